#include "check.h"
#include "timeunit.h"

#define SECOND_NS UINT64_C(1000000000)

/* A stream as it was once and for all: executions of some operators, a pause, and records that come late by some time. */
struct stream {
    uint64_t tick_ns;  /* the truth */
    uint64_t epoch_ns; /* of the device's clock */
    uint64_t operator_ns, operators, pause_ns, late_ns;
    uint64_t idle_ns; /* from subscribing to the first execution */
    uint64_t seed;
};

static uint64_t draw(uint64_t *state, uint64_t below) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return below == 0 ? 0 : *state % below;
}

/* The unit after `length_ns` of the stream; once told, it must not change. */
static enum time_unit run(const struct stream *stream, uint64_t length_ns) {
    const uint64_t subscribed_ns = 1000 * SECOND_NS;
    struct timeunit timeunit;
    timeunit_init(&timeunit, subscribed_ns);
    enum time_unit unit = UNIT_UNKNOWN;
    uint64_t random = stream->seed | 1, device_ns = subscribed_ns + stream->idle_ns, arrival_ns = 0;
    while (device_ns < subscribed_ns + stream->idle_ns + length_ns) {
        for (uint64_t i = 0; i < stream->operators; i++) {
            uint64_t start_ns = stream->epoch_ns + device_ns;
            device_ns += stream->operator_ns / 2 + draw(&random, stream->operator_ns);
            uint64_t end_ns = stream->epoch_ns + device_ns;
            uint64_t comes_ns = device_ns + draw(&random, stream->late_ns);
            arrival_ns = comes_ns > arrival_ns ? comes_ns : arrival_ns;
            enum time_unit now = timeunit_observe(&timeunit, start_ns / stream->tick_ns, end_ns / stream->tick_ns, arrival_ns);
            CHECK(unit == UNIT_UNKNOWN || now == unit);
            unit = now;
        }
        device_ns += draw(&random, stream->pause_ns);
    }
    return unit;
}

/* Whatever is told is true, and a device that is busy is told of in time. */
static void test_many_streams(void) {
    static const uint64_t operators_ns[] = {2000, 50000, 2000000};
    static const uint64_t pauses_ns[] = {0, 1000000, 50000000, 700000000};
    static const uint64_t lates_ns[] = {0, 1000000, 300000000};
    static const uint64_t idles_ns[] = {0, 3 * SECOND_NS, 100 * SECOND_NS};
    uint64_t streams = 0;
    for (size_t o = 0; o < 3; o++) {
        for (size_t p = 0; p < 4; p++) {
            for (size_t l = 0; l < 3; l++) {
                for (size_t i = 0; i < 3; i++) {
                    for (uint64_t tick_ns = 1; tick_ns <= 1000; tick_ns *= 1000) {
                        struct stream stream = {.tick_ns = tick_ns, .epoch_ns = 86400 * SECOND_NS, .operators = 200};
                        stream.operator_ns = operators_ns[o];
                        stream.pause_ns = pauses_ns[p];
                        stream.late_ns = lates_ns[l];
                        stream.idle_ns = idles_ns[i];
                        stream.seed = 7919 * ++streams;
                        enum time_unit unit = run(&stream, 4 * SECOND_NS);
                        enum time_unit truth = tick_ns == 1 ? UNIT_NANOSECONDS : UNIT_MICROSECONDS;
                        bool busy = stream.pause_ns < 10000000;
                        if (unit != truth && (busy || unit != UNIT_UNKNOWN)) {
                            CHECK_FAIL("stream %" PRIu64 " has ticks of %" PRIu64 " ns, and was told %d", streams, tick_ns, (int)unit);
                        }
                    }
                }
            }
        }
    }
}

/* Device time that runs faster than the host's can't be microseconds: told by the second execution of 60 µs. */
static void test_nanoseconds_at_once(void) {
    struct timeunit timeunit;
    timeunit_init(&timeunit, SECOND_NS);
    CHECK_EQ_INT(timeunit_observe(&timeunit, 5000, 35000, SECOND_NS + 1000000), UNIT_UNKNOWN);
    CHECK_EQ_INT(timeunit_observe(&timeunit, 40000, 70000, SECOND_NS + 2000000), UNIT_NANOSECONDS);
    CHECK_EQ_INT(timeunit_observe(&timeunit, 70000, 70001, 10 * SECOND_NS), UNIT_NANOSECONDS);
}

/* Three windows of 300 ms, each kept pace with; a silent one is extended, not counted. */
static void test_three_windows(void) {
    struct timeunit timeunit;
    timeunit_init(&timeunit, SECOND_NS);
    uint64_t now_ns = SECOND_NS, tick = 1000;
    for (int window = 0; window < 3; window++) {
        CHECK_EQ_INT(timeunit_observe(&timeunit, tick, tick + 10, now_ns), UNIT_UNKNOWN);
        now_ns += 300000000;
        CHECK_EQ_INT(timeunit_observe(&timeunit, tick + 10, tick + 20, now_ns), UNIT_UNKNOWN); /* the device stood still: no evidence */
        now_ns += 100000000;
        tick += 100000; /* a quarter of 400 ms */
        enum time_unit unit = timeunit_observe(&timeunit, tick + 10, tick + 20, now_ns);
        CHECK_EQ_INT(unit, window < 2 ? UNIT_UNKNOWN : UNIT_MICROSECONDS);
    }
}

int main(void) {
    test_nanoseconds_at_once();
    test_three_windows();
    test_many_streams();
    return 0;
}
