/* histogram.h: from a duration to its cell. Bounds and cells are opstream.h's. */
#ifndef OPSTREAM_HISTOGRAM_H
#define OPSTREAM_HISTOGRAM_H

#include "histogram_bounds.h"
#include "segment.h"

/* Largest whole nanosecond of each cell (UINT64_MAX for the last). */
extern const uint64_t histogram_bounds_ns[OPSTREAM_CELLS];

/* The cell of the smallest duration in each eighth of each octave. */
extern const uint16_t histogram_first_cells[];

/* A search that starts in the right eighth of the octave has at most a few cells to pass. */
static inline uint32_t histogram_cell_of(uint64_t duration_ns) {
    if (duration_ns - HISTOGRAM_SMALLEST_NS - 1 >= HISTOGRAM_LARGEST_NS - HISTOGRAM_SMALLEST_NS) {
        return duration_ns <= HISTOGRAM_SMALLEST_NS ? 0 : OPSTREAM_CELLS - 1;
    }
    uint32_t octave = 63 ^ (uint32_t)__builtin_clzll(duration_ns);
    uint32_t eighths = (uint32_t)(duration_ns >> (octave - 3)); /* 8 to 15 */
    uint32_t cell = histogram_first_cells[octave * 8 + eighths - (HISTOGRAM_FIRST_OCTAVE + 1) * 8];
    while (histogram_bounds_ns[cell] < duration_ns) {
        cell++;
    }
    return cell;
}

/* The segment's only writer adds one record. `wall_ns` becomes `created` with the first. */
static inline void histogram_add(struct segment_histogram *histogram, uint64_t duration_ns, uint64_t wall_ns) {
    if (!cell_get(&histogram->created_wall_ns)) {
        cell_set(&histogram->created_wall_ns, wall_ns);
    }
    cell_add(&histogram->sum_ns, duration_ns);
    cell_add(&histogram->cells[histogram_cell_of(duration_ns)], 1);
}

/* A histogram whose durations mostly fall into the cell of the one before: the cell is looked for only when they don't. */
struct histogram_cursor {
    struct segment_histogram *histogram;
    cell_u64 *cell;
    uint64_t smallest_ns, spread_ns; /* of the cell: its smallest duration, and what the largest is more */
};

/* At no cell yet. */
static inline void histogram_cursor_init(struct segment_histogram *histogram, struct histogram_cursor *ret_cursor) {
    *ret_cursor = (struct histogram_cursor){.histogram = histogram, .smallest_ns = UINT64_MAX};
}

/* To the cell of a duration, the histogram's first one perhaps. For histogram_cursor_add. */
void histogram_cursor_seek(struct histogram_cursor *cursor, uint64_t duration_ns, uint64_t wall_ns);

/* As histogram_add, for durations of less than UINT64_MAX. */
static inline void histogram_cursor_add(struct histogram_cursor *cursor, uint64_t duration_ns, uint64_t wall_ns) {
    if (duration_ns - cursor->smallest_ns > cursor->spread_ns) {
        histogram_cursor_seek(cursor, duration_ns, wall_ns);
    }
    cell_add(&cursor->histogram->sum_ns, duration_ns);
    cell_add(cursor->cell, 1);
}

#endif
