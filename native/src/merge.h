/* merge.h: equal series of many views become one. An opstream_exposition is this; text.c reads it. */
#ifndef OPSTREAM_MERGE_H
#define OPSTREAM_MERGE_H

#include "view.h"

struct merged_model {
    const char *app, *labels, *model;  /* in the exposition's own memory */
    uint32_t device;
    uint64_t subscriptions, subscribed_ns, last_execution_wall_ns, busy_ns, gap_ns, late_intervals;
    uint64_t busy_created_wall_ns, executions_created_wall_ns, executions_sum_ns;
    uint64_t executions[OPSTREAM_CELLS];
};

struct merged_series {
    uint32_t model;                    /* index of its merged_model */
    const char *type, *name;           /* valid UTF-8 (other bytes have become U+FFFD), not yet escaped or cut */
    uint64_t created_wall_ns, sum_ns, longest_ns;
    uint64_t cells[OPSTREAM_CELLS];
};

/* Sorted by (app, labels, device, model), and within a model by (type, name): valid until the next add. */
size_t merge_models(const opstream_exposition *exposition, const struct merged_model **ret_models);
size_t merge_series(const opstream_exposition *exposition, const struct merged_series **ret_series);

#endif
