#include "clock.h"

#include <errno.h>
#include <time.h>

#include "settings.h"
#include "sim.h"

#define SECOND_NS UINT64_C(1000000000)

uint64_t sim_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec + settings()->clock_offset_ns;
}

void clock_wait(uint64_t tick_ns) {
    if (sim_clock_ns() >= tick_ns) {
        return;
    }
    uint64_t monotonic_ns = tick_ns - settings()->clock_offset_ns;
    struct timespec until = {.tv_sec = (time_t)(monotonic_ns / SECOND_NS), .tv_nsec = (long)(monotonic_ns % SECOND_NS)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}
