#include "histogram.h"

#include <math.h>

#include "histogram_bounds.h"
#include "segment.h"

const uint64_t histogram_bounds_ns[OPSTREAM_CELLS] = {HISTOGRAM_BOUNDS_NS UINT64_MAX};

static const double bounds[OPSTREAM_CELLS] = {HISTOGRAM_BOUNDS INFINITY};
static const uint16_t classic_cells[OPSTREAM_CLASSIC_BOUNDS] = {HISTOGRAM_CLASSIC_CELLS};
static const uint16_t first_cells[] = {HISTOGRAM_FIRST_CELLS};

/* A search that starts in the right eighth of the octave has at most a few cells to pass. */
static inline uint32_t cell_of(uint64_t duration_ns) {
    if (duration_ns <= histogram_bounds_ns[0])
        return 0;
    if (duration_ns > histogram_bounds_ns[OPSTREAM_CELLS - 2])
        return OPSTREAM_CELLS - 1;
    uint32_t octave = 63 - (uint32_t)__builtin_clzll(duration_ns);
    uint32_t eighth = (uint32_t)(duration_ns >> (octave - 3)) & 7;
    uint32_t cell = first_cells[(octave - HISTOGRAM_FIRST_OCTAVE) * 8 + eighth];
    while (histogram_bounds_ns[cell] < duration_ns)
        cell++;
    return cell;
}

uint32_t opstream_cell_of(uint64_t duration_ns) {
    return cell_of(duration_ns);
}

double opstream_cell_bound(uint32_t cell) {
    return cell < OPSTREAM_CELLS ? bounds[cell] : NAN;
}

uint32_t opstream_classic_cell(uint32_t i) {
    return i < OPSTREAM_CLASSIC_BOUNDS ? classic_cells[i] : OPSTREAM_CELLS;
}

uint64_t opstream_classic_bound_ns(uint32_t i) {
    return i < OPSTREAM_CLASSIC_BOUNDS ? histogram_bounds_ns[classic_cells[i]] : 0;
}

void histogram_add(struct segment_histogram *histogram, uint64_t duration_ns, uint64_t wall_ns) {
    if (!cell_get(&histogram->created_wall_ns))
        cell_set(&histogram->created_wall_ns, wall_ns);
    cell_add(&histogram->sum_ns, duration_ns);
    cell_add(&histogram->cells[cell_of(duration_ns)], 1);
}
