#include "histogram.h"

#include <math.h>

const uint64_t histogram_bounds_ns[OPSTREAM_CELLS] = {HISTOGRAM_BOUNDS_NS UINT64_MAX};
const uint16_t histogram_first_cells[] = {HISTOGRAM_FIRST_CELLS};

static const double bounds[OPSTREAM_CELLS] = {HISTOGRAM_BOUNDS INFINITY};
static const uint16_t classic_cells[OPSTREAM_CLASSIC_BOUNDS] = {HISTOGRAM_CLASSIC_CELLS};

uint32_t opstream_cell_of(uint64_t duration_ns) {
    return histogram_cell_of(duration_ns);
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

void histogram_cursor_seek(struct histogram_cursor *cursor, uint64_t duration_ns, uint64_t wall_ns) {
    uint32_t cell = histogram_cell_of(duration_ns);
    if (!cell_get(&cursor->histogram->created_wall_ns)) {
        cell_set(&cursor->histogram->created_wall_ns, wall_ns);
    }
    cursor->cell = &cursor->histogram->cells[cell];
    cursor->smallest_ns = cell > 0 ? histogram_bounds_ns[cell - 1] + 1 : 0;
    cursor->spread_ns = histogram_bounds_ns[cell] - cursor->smallest_ns;
}
