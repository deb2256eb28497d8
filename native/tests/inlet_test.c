#include "inlet.h"

#include <fcntl.h>

#include "check.h"
#include "clock.h"

#define CAPACITY_BYTES (64u << 10)

static struct vendor vendor; /* nothing is asked */
static struct segment_counters counters;
static struct inlet *inlet;
static int write_end;

static void set_up(void) {
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[0], F_SETPIPE_SZ, CAPACITY_BYTES) == CAPACITY_BYTES);
    CHECK_EQ_INT(inlet_new(&vendor, 80, 0, CAPACITY_BYTES, &inlet), 0);
    memset(&counters, 0, sizeof counters);
    inlet->fd = ends[0];
    write_end = ends[1];
}

static void tear_down(void) {
    close(write_end);
    inlet_free(inlet);
}

/* So many records come, and are read. */
static void pass(size_t records, uint64_t now_ns) {
    static const uint8_t bytes[CAPACITY_BYTES];
    struct frame_loss loss = {0};
    CHECK(write(write_end, bytes, 80 * records) == (ssize_t)(80 * records));
    CHECK_EQ_U64(inlet_fill(inlet), 80 * records);
    CHECK_EQ_U64(inlet_read(inlet, 80 * records, true, now_ns, &counters), 80 * records);
    while (frame_next(inlet->frame, &loss)) {
    }
}

static void test_over_half(void) {
    set_up();
    pass(700, CLOCK_SECOND_NS);
    CHECK_EQ_U64(inlet_over_half_ns(inlet, CLOCK_SECOND_NS), 0);
    pass(500, CLOCK_SECOND_NS + 400);
    CHECK_EQ_U64(inlet_over_half_ns(inlet, CLOCK_SECOND_NS + 500), 500);
    CHECK_EQ_U64(inlet->nap_ns, 0);
    pass(300, CLOCK_SECOND_NS + 600);
    CHECK_EQ_U64(inlet_over_half_ns(inlet, CLOCK_SECOND_NS + 700), 0);
    CHECK(inlet->nap_ns > 0);

    /* Two bursts, and silence between them. */
    pass(700, 2 * CLOCK_SECOND_NS);
    inlet_is_empty(inlet);
    CHECK_EQ_U64(inlet_over_half_ns(inlet, 9 * CLOCK_SECOND_NS), 0);
    pass(700, 9 * CLOCK_SECOND_NS);
    CHECK_EQ_U64(inlet_over_half_ns(inlet, 9 * CLOCK_SECOND_NS + 7), 7);
    CHECK_EQ_U64(cell_get(&counters.bytes_taken), 80 * (700 + 500 + 300 + 700 + 700));
    tear_down();
}

/* Highest fills of a minute and the one before. */
static void test_high_water(void) {
    const uint64_t usable = CAPACITY_BYTES / 4096 * (4096 / 80 * 80);
    set_up();
    pass(400, 10 * WINDOW_NS);
    pass(200, 10 * WINDOW_NS + 1);
    CHECK_EQ_U64(cell_get(&counters.pipe_high_water_ppm[0]), 400 * 80 * UINT64_C(1000000) / usable);
    pass(100, 11 * WINDOW_NS);
    CHECK_EQ_U64(cell_get(&counters.pipe_high_water_ppm[0]), 400 * 80 * UINT64_C(1000000) / usable);
    CHECK_EQ_U64(cell_get(&counters.pipe_high_water_ppm[1]), 100 * 80 * UINT64_C(1000000) / usable);
    pass(100, 14 * WINDOW_NS);
    CHECK_EQ_U64(cell_get(&counters.pipe_high_water_ppm[0]), 100 * 80 * UINT64_C(1000000) / usable);
    CHECK_EQ_U64(cell_get(&counters.pipe_high_water_ppm[1]), 0);
    CHECK_EQ_U64(cell_get(&counters.pipe_window), 14);
    tear_down();
}

/* What isn't kept is gone, and counted as taken. */
static void test_discard(void) {
    set_up();
    static const uint8_t bytes[800];
    CHECK(write(write_end, bytes, sizeof bytes) == sizeof bytes);
    CHECK_EQ_U64(inlet_read(inlet, sizeof bytes, false, CLOCK_SECOND_NS, &counters), sizeof bytes);
    CHECK_EQ_U64(frame_pending_bytes(inlet->frame), 0);
    CHECK_EQ_U64(cell_get(&counters.bytes_taken), sizeof bytes);
    tear_down();
}

int main(void) {
    inlet_free(NULL);
    CHECK_EQ_INT(inlet_new(&vendor, 0, 0, CAPACITY_BYTES, &inlet), OPSTREAM_E_INVALID);
    CHECK_EQ_INT(inlet_new(&vendor, 80, 0, 100, &inlet), OPSTREAM_E_INVALID);
    test_over_half();
    test_high_water();
    test_discard();
    return 0;
}
