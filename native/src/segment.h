/* segment.h: the writing side of a segment: made, sealed, and its pages had before they are touched. */
#ifndef OPSTREAM_SEGMENT_H
#define OPSTREAM_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "descriptor.h"
#include "layout.h"

struct segment_writer {
    struct segment *base; /* mapped read-write, MADV_DONTFORK */
    int fd;               /* sealed memfd, O_CLOEXEC, at a high number; see segment_descriptor */
    struct descriptor_identity identity;
    size_t bytes;
    struct segment_model *models;
    struct segment_series *others;
    struct segment_series *series;
    char *strings;
    uint64_t series_capacity;
    uint64_t strings_bytes;
    uint64_t models_had, others_had;  /* bytes of these tables that are allocated: control thread */
    uint64_t series_had, strings_had; /* reader thread */
};

/* Makes the memfd (`series_capacity` rows), maps it, seals it (SHRINK, GROW, SEAL, and FUTURE_WRITE where the kernel has it), writes the
 * header. Allocates the pages of the header, of model row 0 and of its OTHERS row. `identity`'s uuid, times and pid are filled in here. */
int segment_create(const struct segment_identity *identity, uint32_t series_capacity, struct segment_writer *ret_writer);

/* The memfd, or -1 when its number in the calling thread's table has become something else: the application closes what isn't its own. Any
 * thread. */
int segment_descriptor(const struct segment_writer *writer);

/* Unmaps and closes. Only when no thread writes any more. */
void segment_free(struct segment_writer *writer);

/* Whether rows up to and including `row` of a table can be touched: allocates further pages (fallocate, in chunks) as needed. false: no
 * memory is to be had, or nothing to have it through. */
bool segment_have_model(struct segment_writer *writer, uint64_t row);     /* MODELS and OTHERS; control thread */
bool segment_have_series(struct segment_writer *writer, uint64_t row);    /* reader thread */
bool segment_have_strings(struct segment_writer *writer, uint64_t bytes); /* reader thread */

/* The model row for (device, name): an existing one that is not subscribed, else a new one, else row 0. Sets model_id. Control thread. */
uint32_t segment_model_row(struct segment_writer *writer, uint32_t model_id, uint32_t device, const char *name);

/* Sets a row's state, and lets its subscribed time run or stand. Control thread. */
void segment_model_set_state(struct segment_writer *writer, uint32_t row, enum segment_model_state state, uint64_t now_ns);

/* Counts a failed subscribe call. Control thread. */
void segment_count_error(struct segment_writer *writer, int acl_error);

/* Copies the live totals into the committed ones under the sequence lock; `held_back` records are read but not yet recorded and stay out.
 * Reader thread. */
void segment_commit(struct segment_writer *writer, uint64_t held_back);

/* Single-writer addition: relaxed load and store, no locked instruction. */
static inline void cell_add(cell_u64 *cell, uint64_t amount) {
    atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + amount, memory_order_relaxed);
}

static inline void cell_set(cell_u64 *cell, uint64_t value) {
    atomic_store_explicit(cell, value, memory_order_relaxed);
}

static inline uint64_t cell_get(const cell_u64 *cell) {
    return atomic_load_explicit((cell_u64 *)cell, memory_order_relaxed);
}

#endif
