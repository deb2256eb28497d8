/* histogram.h: from a duration to its cell. Bounds and cells are opstream.h's. */
#ifndef OPSTREAM_HISTOGRAM_H
#define OPSTREAM_HISTOGRAM_H

#include "layout.h"

/* Largest whole nanosecond of each cell (UINT64_MAX for the last). */
extern const uint64_t histogram_bounds_ns[OPSTREAM_CELLS];

/* The segment's only writer adds one record. `wall_ns` becomes `created` with the first. */
void histogram_add(struct segment_histogram *histogram, uint64_t duration_ns, uint64_t wall_ns);

#endif
