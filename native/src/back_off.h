/* back_off.h: how long paused models stay off: the first pause of a bad time is a second, each further one twice the last, a minute at
 * most. A minute without one ends the bad time. Control thread. `now_ns`: CLOCK_MONOTONIC. */
#ifndef OPSTREAM_BACK_OFF_H
#define OPSTREAM_BACK_OFF_H

#include <stdbool.h>

#include "clock.h"

#define BACK_OFF_MIN_NS CLOCK_SECOND_NS
#define BACK_OFF_MAX_NS (60 * CLOCK_SECOND_NS)

/* Begins as zeros. */
struct back_off {
    uint64_t pause_ns; /* the last one's length */
    uint64_t ended_ns; /* when it ended */
};

/* A pause begins: when it is to end. */
static inline uint64_t back_off_begin(struct back_off *back_off, uint64_t now_ns) {
    bool calm = back_off->pause_ns == 0 || now_ns - back_off->ended_ns > BACK_OFF_MAX_NS;
    uint64_t pause_ns = calm ? BACK_OFF_MIN_NS : 2 * back_off->pause_ns;
    back_off->pause_ns = pause_ns < BACK_OFF_MAX_NS ? pause_ns : BACK_OFF_MAX_NS;
    return now_ns + back_off->pause_ns;
}

/* It has ended, whether or not the models came back. */
static inline void back_off_end(struct back_off *back_off, uint64_t now_ns) {
    back_off->ended_ns = now_ns;
}

#endif
