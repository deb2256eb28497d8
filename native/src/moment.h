/* moment.h: the host's time, as records are counted by it. One look at the clocks serves many of them. */
#ifndef OPSTREAM_MOMENT_H
#define OPSTREAM_MOMENT_H

#include "layout.h"

struct moment {
    uint64_t monotonic_ns;
    uint64_t wall_ns;
    uint64_t window; /* monotonic_ns / WINDOW_NS */
};

static inline struct moment moment_of(uint64_t monotonic_ns, uint64_t wall_ns) {
    return (struct moment){.monotonic_ns = monotonic_ns, .wall_ns = wall_ns, .window = monotonic_ns / WINDOW_NS};
}

#endif
