#include "timeunit.h"

#define TICK_NS UINT64_C(1000) /* a tick, if it is a microsecond */
#define GRACE_NS UINT64_C(50000000)
#define ARRIVAL_MARGIN_NS UINT64_C(10000000000)
#define WINDOW_LENGTH_NS UINT64_C(300000000)
#define WINDOWS_NEEDED 3u

void timeunit_init(struct timeunit *timeunit, uint64_t subscribed_ns) {
    *timeunit = (struct timeunit){.unit = UNIT_UNKNOWN, .subscribed_ns = subscribed_ns, .smallest_start = UINT64_MAX};
}

static uint64_t later(uint64_t a_ns, uint64_t b_ns) {
    return a_ns > b_ns ? a_ns : b_ns;
}

/* Device time can't have advanced by more than the host's since records could be made, if the unit is right. */
static bool too_fast_for_microseconds(const struct timeunit *timeunit, uint64_t now_ns) {
    uint64_t margin_start_ns = timeunit->first_arrival_ns > ARRIVAL_MARGIN_NS ? timeunit->first_arrival_ns - ARRIVAL_MARGIN_NS : 0;
    uint64_t since_ns = later(timeunit->subscribed_ns, margin_start_ns);
    uint64_t elapsed_ns = now_ns > since_ns ? now_ns - since_ns : 0;
    return timeunit->largest_end - timeunit->smallest_start > (elapsed_ns + GRACE_NS) / TICK_NS;
}

/* Whether the present window ends here: long enough, and device time has kept pace with it. */
static bool window_ends(const struct timeunit *timeunit, uint64_t now_ns) {
    uint64_t length_ns = now_ns - timeunit->window_start_ns;
    uint64_t advance_ticks = timeunit->largest_end - timeunit->window_largest_end;
    return length_ns >= WINDOW_LENGTH_NS && advance_ticks >= length_ns / 4 / TICK_NS;
}

static void window_begin(struct timeunit *timeunit, uint64_t now_ns) {
    timeunit->window_start_ns = now_ns;
    timeunit->window_largest_end = timeunit->largest_end;
}

enum time_unit timeunit_observe(struct timeunit *timeunit, uint64_t start, uint64_t end, uint64_t now_ns) {
    if (timeunit->unit != UNIT_UNKNOWN) {
        return timeunit->unit;
    }
    bool first = timeunit->first_arrival_ns == 0;
    if (start < timeunit->smallest_start) {
        timeunit->smallest_start = start;
    }
    if (end > timeunit->largest_end) {
        timeunit->largest_end = end;
    }
    if (first) {
        timeunit->first_arrival_ns = now_ns;
        window_begin(timeunit, now_ns);
    }
    if (too_fast_for_microseconds(timeunit, now_ns)) {
        timeunit->unit = UNIT_NANOSECONDS;
    } else if (window_ends(timeunit, now_ns)) {
        window_begin(timeunit, now_ns);
        if (++timeunit->windows == WINDOWS_NEEDED) {
            timeunit->unit = UNIT_MICROSECONDS;
        }
    }
    return timeunit->unit;
}
