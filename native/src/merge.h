/* merge.h: equal series of many views become one. An opstream_exposition is this; text.c reads it. */
#ifndef OPSTREAM_MERGE_H
#define OPSTREAM_MERGE_H

#include "arena.h"
#include "hash.h"
#include "view.h"

/* Texts are in the exposition's own memory, NUL-terminated. */
struct merged_model {
    const char *app, *labels, *name; /* name: valid UTF-8, not yet escaped */
    uint32_t device;                 /* DEVICE_OTHER: nobody's */
    uint32_t order;                  /* place among the sorted models */
    uint64_t subscriptions, subscribed_ns, last_execution_wall_ns, busy_ns, gap_ns, late_intervals;
    uint64_t busy_created_wall_ns, executions_created_wall_ns, executions_sum_ns;
    uint64_t executions[OPSTREAM_CELLS];
};

struct merged_type {
    struct merged_model *model;
    const char *type; /* valid UTF-8 (other bytes have become U+FFFD), not yet escaped or cut */
    uint32_t type_length;
    uint32_t order; /* place among the sorted types */
    int recorded;   /* has a series with something to show */
};

struct merged_series {
    struct merged_type *type;
    const char *name; /* as type */
    uint32_t name_length;
    uint64_t created_wall_ns;           /* 0: nothing of it has been added yet */
    uint64_t count, sum_ns, longest_ns; /* count: the sum of the cells */
    uint64_t cells[OPSTREAM_CELLS];
};

/* Open addressing, at most half full; what is found is told by comparing with it. */
struct merge_table {
    struct merge_entry {
        uint64_t hash;
        void *found; /* merged_model, merged_type or merged_series; NULL = free */
    } *entries;
    size_t capacity, count;
};

struct opstream_exposition {
    struct hash_seed seed;
    struct arena arena; /* of all that is found in the tables, and of its texts */
    struct merge_table model_table, type_table, series_table;
    struct merged_model **models;  /* sorted, when `sorted` */
    struct merged_series **series; /* those with a record, sorted, when `sorted` */
    size_t models_count, series_count;
    int sorted;
    char *text; /* text.c's */
    size_t text_capacity;
};

/* Fills models and series: sorted by (app, labels, device, model), and within a model by (type, name). Valid until the next add. */
int merge_sort(opstream_exposition *exposition);

#endif
