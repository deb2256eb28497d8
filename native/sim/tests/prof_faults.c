/* Injected faults: each does what its kind says, as often as the journal says. */
#include "prof_case.h"

#define OPERATORS 300u
#define ROOM ((OPERATORS + 1) * 256u)

struct delivery {
    uint32_t model;
    size_t bytes;
    uint8_t data[ROOM];
};

static struct delivery delivery;

/* The whole stream of one execution. */
static void deliver(void) {
    CHECK(aclInit(NULL) == 0);
    struct stream stream = open_stream();
    delivery.model = load_model(0, OPERATORS);
    CHECK(subscribe(delivery.model, stream) == 0);
    execute(delivery.model);
    CHECK(aclprofModelUnSubscribe(delivery.model) == 0);
    delivery.bytes = read_all(stream.read_fd, delivery.data, sizeof delivery.data);
    CHECK(journal_value("records_made") % (OPERATORS + 1) == 0 && journal_value("records_lost") == 0);
}

static bool good(const uint8_t *record) {
    uint32_t number;
    return aclprofGetOpNum(record, RECORD, &number) == 0;
}

struct tally {
    unsigned records, bad_runs, backwards, no_name, shortest_run;
    size_t bad_bytes;
};

/* Reads as a client must: byte by byte to the next good record after a bad one. */
static struct tally tally_up(void) {
    struct tally tally = {.shortest_run = UINT32_MAX};
    bool in_bad_run = false;
    unsigned run = OPERATORS;
    for (size_t at = 0; at < delivery.bytes;) {
        const uint8_t *record = delivery.data + at;
        if (at + RECORD > delivery.bytes || !good(record)) {
            if (!in_bad_run) {
                tally.bad_runs++;
                tally.shortest_run = run < tally.shortest_run ? run : tally.shortest_run;
            }
            in_bad_run = true;
            tally.bad_bytes++;
            run = 0;
            at++;
            continue;
        }
        char text[64] = {0};
        int first = aclprofGetOpType(record, RECORD, 0, text, sizeof text);
        int second = first ? aclprofGetOpType(record, RECORD, 0, text, sizeof text) : 0;
        CHECK(first == 0 || first == 500005);
        CHECK(second == 0 || second == 500005);
        CHECK(aclprofGetOpName(record, RECORD, 0, text, sizeof text) == second);
        tally.no_name += second != 0;
        tally.records++;
        tally.backwards += aclprofGetOpEnd(record, RECORD, 0) < aclprofGetOpStart(record, RECORD, 0);
        in_bad_run = false;
        run++;
        at += RECORD;
    }
    return tally;
}

static void corrupt(void) {
    deliver();
    CHECK(delivery.bytes == (OPERATORS + 1) * RECORD);
    struct tally tally = tally_up();
    CHECK(tally.bad_runs == 5 && tally.bad_bytes == 5 * RECORD && tally.records == OPERATORS + 1 - 5);
    CHECK(tally.shortest_run == 2);
    CHECK(journal_value("fault.corrupt") == 5 && journal_value("records_written") == tally.records);
    CHECK(journal_value("strings_made") - journal_value("strings_read") == 2 * 5);
}

static void wider_gap(void) {
    deliver();
    CHECK(tally_up().shortest_run == 7);
}

static void truncated(void) {
    deliver();
    struct tally tally = tally_up();
    CHECK(tally.bad_runs == 5 && tally.records == OPERATORS + 1 - 5);
    CHECK(tally.bad_bytes == delivery.bytes - tally.records * RECORD && tally.bad_bytes < 5 * RECORD);
    CHECK(journal_value("fault.truncated") == 5 && journal_value("records_written") == tally.records);
}

static void partial_write(void) {
    deliver();
    CHECK(delivery.bytes == (OPERATORS + 1) * RECORD && tally_up().records == OPERATORS + 1);
    CHECK(journal_value("fault.partial-write") == 5 && journal_value("records_written") == OPERATORS + 1);
}

static void end_before_start(void) {
    deliver();
    struct tally tally = tally_up();
    CHECK(tally.records == OPERATORS + 1 && tally.backwards == 5 && journal_value("fault.end-before-start") == 5);
}

static void getter_error(void) {
    deliver();
    struct tally tally = tally_up();
    CHECK(tally.records == OPERATORS + 1 && tally.no_name == 0);
    CHECK(journal_value("fault.getter-error") == 5 && journal_value("strings_read") == 2 * (OPERATORS + 1));
}

static void getter_refusal(void) {
    deliver();
    struct tally tally = tally_up();
    CHECK(tally.records == OPERATORS + 1 && tally.no_name == 5 && journal_value("fault.getter-refusal") == 5);
    CHECK(journal_value("strings_read") == 2 * (OPERATORS + 1 - 5));
}

static void late(void) {
    deliver();
    CHECK(delivery.bytes == (OPERATORS + 1) * RECORD);
    unsigned descents = 0;
    for (uint32_t i = 1; i < OPERATORS; i++) {
        descents += aclprofGetOpStart(delivery.data, delivery.bytes, i) < aclprofGetOpStart(delivery.data, delivery.bytes, i - 1);
    }
    CHECK(descents > 0);
    CHECK(tally_up().records == OPERATORS + 1 && journal_value("fault.late") == 5);
}

static void stall(void) {
    deliver();
    CHECK(tally_up().records == OPERATORS + 1 && journal_value("fault.stall") == 2);
}

static void all_together(void) {
    deliver();
    struct tally tally = tally_up();
    CHECK(tally.bad_runs == 6 && tally.shortest_run >= 2);
    CHECK(tally.records == OPERATORS + 1 - 6 && journal_value("records_written") == tally.records);
    CHECK(tally.backwards == 3 && tally.no_name == 3);
    CHECK(journal_value("fault.corrupt") == 3 && journal_value("fault.truncated") == 3 && journal_value("fault.late") == 3);
    CHECK(journal_value("fault.getter-error") == 3 && journal_value("fault.stall") == 3 && journal_value("fault.partial-write") == 3);
}

static void probability(void) {
    deliver();
    struct tally tally = tally_up();
    CHECK(tally.bad_runs == journal_value("fault.corrupt") && tally.bad_runs > 0 && tally.bad_runs < OPERATORS / 3);
}

/* A byte for each record: whether it is bad. */
static void which_are_bad(uint8_t *ret_map) {
    deliver();
    for (uint32_t i = 0; i <= OPERATORS; i++) {
        ret_map[i] = !good(delivery.data + i * RECORD);
    }
}

/* The same seed makes the same faults in every process. */
static void seeded(void) {
    uint8_t *maps = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(maps != MAP_FAILED);
    for (unsigned child = 0; child < 2; child++) {
        uint64_t made = journal_value("records_made");
        pid_t pid = fork();
        if (pid == 0) {
            which_are_bad(maps + child * 4096);
            _exit(0);
        }
        CHECK(pid > 0 && status_of(pid) == 0 && journal_value("records_made") == made + OPERATORS + 1);
    }
    CHECK(memcmp(maps, maps + 4096, 4096) == 0 && memchr(maps, 1, OPERATORS));
}

static void record_size(void) {
    deliver();
    size_t size;
    uint32_t number;
    CHECK(aclprofGetOpDescSize(&size) == 0 && size == 96);
    CHECK(delivery.bytes == (OPERATORS + 1) * 96);
    CHECK(aclprofGetOpNum(delivery.data, delivery.bytes, &number) == 0 && number == OPERATORS + 1);
    CHECK(aclprofGetOpDuration(delivery.data, delivery.bytes, 5) == 1000);
    delivery.data[96 + 95] ^= 1;
    CHECK(aclprofGetOpNum(delivery.data, delivery.bytes, &number) == 100000);
}

static void layout(void) {
    deliver();
    CHECK(tally_up().records == OPERATORS + 1);
    uint64_t start;
    uint32_t model;
    memcpy(&model, delivery.data + 4, sizeof model);
    memcpy(&start, delivery.data + 32, sizeof start);
    CHECK(aclprofGetModelId(delivery.data, RECORD, 0) == delivery.model && model != delivery.model);
    CHECK(aclprofGetOpStart(delivery.data, RECORD, 0) != start && aclprofGetOpDuration(delivery.data, RECORD, 0) == 1000);
}

static void microseconds(void) {
    deliver();
    CHECK(aclprofGetOpDuration(delivery.data, RECORD, 0) == 1);
    CHECK(aclprofGetOpEnd(delivery.data, RECORD, 0) - aclprofGetOpStart(delivery.data, RECORD, 0) <= 2);
    CHECK(journal_value("fault.microseconds") == 1);
}

static void refused(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t model = load_model(0, 1);
    CHECK(subscribe(model, open_stream()) == 500005 && subscribe(model, open_stream()) == 500005);
    CHECK(aclprofModelUnSubscribe(model) == 100011);
}

static void subscribe_fails(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t model = load_model(0, 1);
    struct stream stream = open_stream();
    CHECK(subscribe(model, stream) == 500002 && subscribe(model, stream) == 500002);
    CHECK(journal_value("fault.subscribe") == 2);
    CHECK(subscribe(model, stream) == 0 && aclprofModelUnSubscribe(model) == 0);
}

static void getter_crash(void) {
    deliver();
    for (int i = 0; i < 6; i++) {
        CHECK(aclprofGetModelId(delivery.data, RECORD, 0) == delivery.model);
    }
    aclprofGetModelId(delivery.data, RECORD, 0);
    _exit(CASE_FAILED);
}

static void getter_delay(void) {
    deliver();
    char text[64] = {0};
    uint64_t before = journal_value("getter_ns");
    CHECK(aclprofGetOpType(delivery.data, RECORD, 0, text, sizeof text) == 0);
    CHECK(aclprofGetOpName(delivery.data, RECORD, 0, text, sizeof text) == 0);
    CHECK(journal_value("getter_ns") - before >= 2 * 3000000);
    CHECK(journal_value("fault.getter-delay") == 1);
}

static const struct prof_case cases[] = {
    {.name = "corrupt", .run = corrupt, .faults = "corrupt=count:5"},
    {.name = "wider_gap", .run = wider_gap, .faults = "corrupt=1", .variable = "OPSTREAM_SIM_FAULT_GAP=7"},
    {.name = "truncated", .run = truncated, .faults = "truncated=count:5"},
    {.name = "partial_write", .run = partial_write, .faults = "partial-write=count:5@1ms"},
    {.name = "end_before_start", .run = end_before_start, .faults = "end-before-start=count:5"},
    {.name = "getter_error", .run = getter_error, .faults = "getter-error=count:5"},
    {.name = "getter_refusal", .run = getter_refusal, .faults = "getter-refusal=count:5"},
    {.name = "late", .run = late, .faults = "late=count:5@20ms"},
    {.name = "stall", .run = stall, .faults = "stall=count:2@500us"},
    {.name = "all_together",
     .run = all_together,
     .faults = "corrupt=count:3,end-before-start=count:3,getter-error=count:3,getter-refusal=count:3,late=count:3,"
               "partial-write=count:3@1ms,stall=count:3@1ms,truncated=count:3"},
    {.name = "probability", .run = probability, .faults = "corrupt=0.05"},
    {.name = "seeded", .run = seeded, .faults = "corrupt=0.05", .variable = "OPSTREAM_SIM_SEED=42"},
    {.name = "record_size", .run = record_size, .faults = "record-size=96"},
    {.name = "layout", .run = layout, .faults = "layout"},
    {.name = "microseconds", .run = microseconds, .faults = "microseconds", .variable = "OPSTREAM_SIM_SPEED=1"},
    {.name = "microseconds_unthrottled", .run = refused, .faults = "microseconds"},
    {.name = "unknown_kind", .run = refused, .faults = "corrupt=0.5,nonsense=1"},
    {.name = "bad_probability", .run = refused, .faults = "corrupt=1.5"},
    {.name = "no_probability", .run = refused, .faults = "corrupt=often"},
    {.name = "bad_time", .run = refused, .faults = "stall=0.1@50"},
    {.name = "time_of_a_timeless_kind", .run = refused, .faults = "corrupt=0.1@50ms"},
    {.name = "kind_twice", .run = refused, .faults = "layout,layout"},
    {.name = "trailing_comma", .run = refused, .faults = "layout,"},
    {.name = "bad_record_size", .run = refused, .faults = "record-size=81"},
    {.name = "bad_seed", .run = refused, .variable = "OPSTREAM_SIM_SEED=few"},
    {.name = "subscribe_fails", .run = subscribe_fails, .faults = "subscribe=500002:2"},
    {.name = "getter_delay", .run = getter_delay, .faults = "getter-delay=3ms"},
    {.name = "getter_delay_without_unit", .run = refused, .faults = "getter-delay=3"},
    {.name = "getter_crash", .run = getter_crash, .faults = "getter-crash=count:7", .end = ENDS_CRASHED},
};

RUN_CASES(cases)
