#include "account.h"

#include "check.h"

#define SECOND_NS UINT64_C(1000000000)
#define EPOCH_NS (86400 * SECOND_NS) /* the device's clock is ahead by this */
#define SUBSCRIBED_NS (1000 * SECOND_NS)

static struct segment_writer writer;
static struct account *account;
static struct device_clock device;
static uint64_t now_ns;

static void set_up(void) {
    struct segment_identity identity = {.kind = OPSTREAM_KIND_AGENT, .app = "test"};
    CHECK_EQ_INT(segment_create(&identity, 256, &writer), OPSTREAM_OK);
    CHECK_EQ_INT(account_new(&writer, &account), OPSTREAM_OK);
    account_clock_init(&device);
    now_ns = SUBSCRIBED_NS;
}

static void tear_down(void) {
    account_free(account);
    segment_free(&writer);
}

static void set_time(uint64_t to_ns) {
    now_ns = to_ns;
    account_set_time(account, now_ns, now_ns + 7);
}

/* A run that has been read, as the intake hands it over. */
static void arrive(uint32_t model_id, const char *type, const char *name, uint64_t start, uint64_t end) {
    struct operator_run run = {.model_id = model_id,
                               .start = start,
                               .end = end,
                               .type = type,
                               .name = name,
                               .type_length = strlen(type),
                               .name_length = strlen(name),
                               .is_execution = strcmp(name, "keypoint_op") == 0};
    cell_add(&writer.base->counters.live.records_read, 1);
    account_run(account, &device, &run);
}

static const struct segment_totals *live(void) {
    return &writer.base->counters.live;
}

/* At each commit everything that was read is in one place, but for what is held back. */
static void check_balance(void) {
    const struct segment_totals *committed = &writer.base->counters.committed;
    segment_commit(&writer, account_held(account));
    CHECK_EQ_U64(cell_get(&committed->records_read), cell_get(&committed->records_recorded) + cell_get(&committed->records_corrupt) +
                                                         cell_get(&committed->records_name) + cell_get(&committed->records_time));
    CHECK_EQ_U64(cell_get(&live()->records_read), cell_get(&committed->records_read) + account_held(account));
}

static uint64_t count_of(const struct segment_histogram *histogram) {
    uint64_t count = 0;
    for (size_t i = 0; i < OPSTREAM_CELLS; i++) {
        count += cell_get(&histogram->cells[i]);
    }
    return count;
}

static uint64_t operators_sum_ns(void) {
    uint64_t sum_ns = 0, rows = cell_get(&writer.base->used[TABLE_SERIES - 1].rows);
    for (uint64_t row = 0; row < rows; row++) {
        sum_ns += cell_get(&writer.series[row].duration.sum_ns);
    }
    return sum_ns;
}

static uint64_t unit(void) {
    return cell_get(&writer.base->counters.time_unit);
}

static uint32_t subscribe(uint32_t model_id, const char *name) {
    uint32_t row = segment_model_row(&writer, model_id, 0, name);
    CHECK(row != 0);
    account_map_model(account, model_id, row, SUBSCRIBED_NS);
    segment_model_set_state(&writer, row, MODEL_SUBSCRIBED, now_ns);
    return row;
}

/* Held back until the unit is known, and then counted as what they were. */
static void test_nanoseconds(void) {
    set_up();
    uint32_t row = subscribe(5, "m");
    set_time(SUBSCRIBED_NS + 1000000);
    arrive(5, "Conv2D", "a", EPOCH_NS, EPOCH_NS + 1000);
    arrive(5, "Conv2D", "b", EPOCH_NS + 1000, EPOCH_NS + 3000);
    CHECK_EQ_U64(account_held(account), 2);
    CHECK_EQ_U64(account_held_until_ns(account), now_ns + SECOND_NS);
    CHECK_EQ_U64(cell_get(&live()->records_recorded), 0);
    CHECK_EQ_U64(unit(), UNIT_UNKNOWN);
    check_balance();
    arrive(5, "na", "keypoint_op", EPOCH_NS, EPOCH_NS + 60000);
    CHECK_EQ_U64(account_held(account), 0);
    CHECK_EQ_U64(unit(), UNIT_NANOSECONDS);
    CHECK_EQ_U64(cell_get(&live()->records_recorded), 3);
    CHECK_EQ_U64(operators_sum_ns(), 3000);
    CHECK_EQ_U64(cell_get(&writer.models[row].executions.sum_ns), 60000);
    CHECK_EQ_U64(count_of(&writer.models[row].executions), 1);
    CHECK_EQ_U64(count_of(&writer.base->delay), 2);
    CHECK_EQ_U64(cell_get(&writer.models[row].last_execution_wall_ns), now_ns + 7);
    account_settle(account);
    CHECK_EQ_U64(cell_get(&writer.models[row].busy_ns), 3000);
    CHECK_EQ_U64(cell_get(&writer.models[row].gap_ns), 57000);
    check_balance();
    tear_down();
}

/* A run each millisecond of 100 µs, in ticks of 1 µs: after about 0.9 s it is known; what was held back is counted in ns too. */
static void test_microseconds(void) {
    set_up();
    subscribe(5, "m");
    uint64_t runs = 0;
    for (; unit() == UNIT_UNKNOWN; runs++) {
        CHECK(runs < 1000);
        set_time(SUBSCRIBED_NS + (runs + 1) * 1000000);
        uint64_t end_us = (EPOCH_NS + now_ns) / 1000;
        arrive(5, "Conv2D", "a", end_us - 100, end_us);
        check_balance();
    }
    CHECK_EQ_U64(unit(), UNIT_MICROSECONDS);
    CHECK_EQ_U64(account_held(account), 0);
    CHECK_EQ_U64(cell_get(&live()->records_recorded), runs);
    CHECK_EQ_U64(operators_sum_ns(), runs * 100000);
    tear_down();
}

/* One lonely run: after a second it counts as ns, though nobody knows; the question stays open, and can be answered later. */
static void test_held_for_a_second(void) {
    set_up();
    subscribe(5, "m");
    set_time(SUBSCRIBED_NS + 1000000);
    arrive(5, "Conv2D", "a", EPOCH_NS, EPOCH_NS + 10);
    set_time(SUBSCRIBED_NS + 1000000 + SECOND_NS - 1);
    CHECK_EQ_U64(account_held(account), 1);
    set_time(SUBSCRIBED_NS + 1000000 + SECOND_NS);
    CHECK_EQ_U64(account_held(account), 0);
    CHECK_EQ_U64(operators_sum_ns(), 10);
    arrive(5, "Conv2D", "a", EPOCH_NS + 10, EPOCH_NS + 20);
    CHECK_EQ_U64(account_held(account), 0);
    CHECK_EQ_U64(operators_sum_ns(), 20);
    CHECK_EQ_U64(unit(), UNIT_UNKNOWN);
    check_balance();
    uint64_t begin_ns = now_ns, runs = 0;
    for (; unit() == UNIT_UNKNOWN; runs++) {
        CHECK(runs < 2000);
        set_time(begin_ns + (runs + 1) * 1000000);
        arrive(5, "Conv2D", "a", EPOCH_NS + runs * 1000, EPOCH_NS + runs * 1000 + 1);
    }
    CHECK_EQ_U64(unit(), UNIT_MICROSECONDS);
    uint64_t before_ns = operators_sum_ns();
    arrive(5, "Conv2D", "a", EPOCH_NS + runs * 1000, EPOCH_NS + runs * 1000 + 3);
    CHECK_EQ_U64(operators_sum_ns(), before_ns + 3000);
    check_balance();
    tear_down();
}

/* All at one moment of the device's time, so that nothing can be told: the last one that there is room for waits, the next ends the waiting
 * for all. */
static void test_held_up_to_limit(const char *name) {
    set_up();
    subscribe(5, "m");
    set_time(SUBSCRIBED_NS + 1000000);
    uint64_t runs = 0;
    do {
        CHECK(runs <= TIMEUNIT_HELD_MAX);
        arrive(5, "Conv2D", name, EPOCH_NS, EPOCH_NS + 2);
        runs++;
    } while (account_held(account) > 0);
    CHECK(strlen(name) > 300 || runs == TIMEUNIT_HELD_MAX + 1);
    CHECK_EQ_U64(cell_get(&live()->records_recorded), runs);
    CHECK_EQ_U64(operators_sum_ns(), 2 * runs);
    CHECK_EQ_U64(unit(), UNIT_UNKNOWN);
    check_balance();
    tear_down();
}

static void test_impossible_times(void) {
    const uint64_t day_ns = 86400 * SECOND_NS;
    set_up();
    subscribe(5, "m");
    set_time(SUBSCRIBED_NS + 1000000);
    arrive(5, "Conv2D", "a", EPOCH_NS + 1, EPOCH_NS); /* at once, and it is no evidence of the unit */
    CHECK_EQ_U64(cell_get(&live()->records_time), 1);
    CHECK_EQ_U64(unit(), UNIT_UNKNOWN);
    arrive(5, "Conv2D", "a", EPOCH_NS, EPOCH_NS + day_ns);
    CHECK_EQ_U64(unit(), UNIT_NANOSECONDS);
    arrive(5, "Conv2D", "a", EPOCH_NS, EPOCH_NS + day_ns + 1);
    arrive(5, "na", "keypoint_op", EPOCH_NS + 1, EPOCH_NS);
    arrive(5, "Conv2D", "a", 0, UINT64_MAX);
    CHECK_EQ_U64(cell_get(&live()->records_time), 4);
    CHECK_EQ_U64(cell_get(&live()->records_recorded), 1);
    CHECK_EQ_U64(operators_sum_ns(), day_ns);
    check_balance();
    tear_down();
}

/* An id without a model, one that has lost it to another row, and more models than there are rows. */
static void test_rows(void) {
    set_up();
    uint32_t first = subscribe(5, "first"), second = subscribe(UINT32_MAX, "second");
    set_time(SUBSCRIBED_NS + 1000000);
    arrive(5, "na", "keypoint_op", EPOCH_NS, EPOCH_NS + 1000000);
    arrive(UINT32_MAX, "na", "keypoint_op", EPOCH_NS, EPOCH_NS + 2000000);
    arrive(5, "na", "keypoint_op", EPOCH_NS, EPOCH_NS + 4000000);
    CHECK_EQ_U64(cell_get(&live()->records_overflowed), 0);
    arrive(6, "na", "keypoint_op", EPOCH_NS, EPOCH_NS + 8000000);
    arrive(0, "Conv2D", "a", EPOCH_NS, EPOCH_NS + 16);
    CHECK_EQ_U64(cell_get(&live()->records_overflowed), 2);
    CHECK_EQ_U64(cell_get(&writer.models[first].executions.sum_ns), 5000000);
    CHECK_EQ_U64(cell_get(&writer.models[second].executions.sum_ns), 2000000);
    CHECK_EQ_U64(cell_get(&writer.models[0].executions.sum_ns), 8000000);

    uint32_t third = subscribe(5, "third");
    CHECK(third != first);
    arrive(5, "na", "keypoint_op", EPOCH_NS, EPOCH_NS + 1000);
    CHECK_EQ_U64(cell_get(&writer.models[third].executions.sum_ns), 1000);
    account_map_model(account, 5, 0, SUBSCRIBED_NS);
    arrive(5, "na", "keypoint_op", EPOCH_NS, EPOCH_NS + 10);
    CHECK_EQ_U64(cell_get(&writer.models[0].executions.sum_ns), 8000010);
    CHECK_EQ_U64(cell_get(&live()->records_overflowed), 3);
    check_balance();
    tear_down();
}

/* The fastest record of a minute is taken for one without delay. */
static void test_delay(void) {
    set_up();
    subscribe(5, "m");
    set_time(SUBSCRIBED_NS + 1000000);
    arrive(5, "na", "keypoint_op", EPOCH_NS, EPOCH_NS + SECOND_NS); /* the unit is known, and no delay of an execution counted */
    const struct segment_histogram *delay = &writer.base->delay;
    CHECK_EQ_U64(count_of(delay), 0);
    uint64_t begin_ns = SUBSCRIBED_NS + SECOND_NS;
    set_time(begin_ns);
    arrive(5, "Conv2D", "a", EPOCH_NS + begin_ns - 500000, EPOCH_NS + begin_ns - 300000);
    CHECK_EQ_U64(cell_get(&delay->sum_ns), 0);
    set_time(begin_ns + 1000000);
    arrive(5, "Conv2D", "a", EPOCH_NS + begin_ns, EPOCH_NS + begin_ns + 400000); /* 600 µs old, 300 more than the first */
    CHECK_EQ_U64(cell_get(&delay->sum_ns), 300000);
    set_time(begin_ns + 130 * SECOND_NS); /* the first one is forgotten */
    arrive(5, "Conv2D", "a", EPOCH_NS + now_ns - 700000, EPOCH_NS + now_ns - 600000);
    CHECK_EQ_U64(cell_get(&delay->sum_ns), 300000);
    CHECK_EQ_U64(count_of(delay), 3);
    tear_down();
}

int main(void) {
    static char long_name[601];
    memset(long_name, 'x', sizeof long_name - 1);
    account_free(NULL);
    test_nanoseconds();
    test_microseconds();
    test_held_for_a_second();
    test_held_up_to_limit("a");
    test_held_up_to_limit(long_name);
    test_impossible_times();
    test_rows();
    test_delay();
    return 0;
}
