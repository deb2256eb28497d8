/* Busy and gap against an oracle that paints each moment of a small world. */
#include "busy.h"
#include "check.h"

#define MS UINT64_C(1000000)
#define WORLD_MS 20000u

static uint64_t seed;

static uint64_t random_below(uint64_t limit) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % limit;
}

struct oracle {
    unsigned char ran[WORLD_MS], inside[WORLD_MS];
    uint64_t newest_end, horizon, late;
};

static void oracle_end(struct oracle *oracle, uint64_t end) {
    if (end > oracle->newest_end) {
        oracle->newest_end = end;
    }
    if (oracle->newest_end > 1000) {
        oracle->horizon = oracle->newest_end - 1000;
    }
}

static void oracle_operator(struct oracle *oracle, uint64_t start, uint64_t end) {
    oracle->late += start < oracle->horizon;
    for (uint64_t t = start < oracle->horizon ? oracle->horizon : start; t < end; t++) {
        oracle->ran[t] = 1;
    }
    oracle_end(oracle, end);
}

static void oracle_execution(struct oracle *oracle, uint64_t start, uint64_t end) {
    memset(oracle->inside + start, 1, end - start);
    oracle_end(oracle, end);
}

static void check_totals(const struct segment_model *model, const struct oracle *oracle, uint64_t until) {
    uint64_t busy = 0, gap = 0;
    for (uint64_t t = 0; t < until; t++) {
        busy += oracle->ran[t];
        gap += oracle->inside[t] && !oracle->ran[t];
    }
    CHECK_EQ_U64(cell_get(&model->busy_ns), busy * MS);
    CHECK_EQ_U64(cell_get(&model->gap_ns), gap * MS);
    CHECK_EQ_U64(cell_get(&model->late_intervals), oracle->late);
}

static void check_random_world(uint64_t number) {
    static struct oracle oracle;
    static struct segment_model model;
    struct busy *busy;
    memset(&oracle, 0, sizeof(oracle));
    memset(&model, 0, sizeof(model));
    seed = number;
    CHECK_EQ_INT(busy_new(&model, &busy), 0);
    uint64_t disorder = 1 + random_below(3000), longest = 1 + random_below(number % 3 ? 60 : 2500);
    for (uint64_t now = 0; now + longest + 1 < WORLD_MS; now += random_below(40)) {
        uint64_t back = random_below(disorder), start = now > back ? now - back : 0, end = start + random_below(longest + 1);
        if (random_below(8)) {
            oracle_operator(&oracle, start, end);
            busy_operator(busy, start * MS, end * MS);
        } else {
            oracle_execution(&oracle, start, end);
            busy_execution(busy, start * MS, end * MS);
        }
        if (!random_below(16)) {
            check_totals(&model, &oracle, oracle.horizon);
        }
    }
    busy_settle(busy);
    check_totals(&model, &oracle, WORLD_MS);
    busy_free(busy);
}

/* More disjoint intervals within a second than may wait: the oldest are final before their time. */
static void check_many_intervals(void) {
    static struct segment_model model;
    struct busy *busy;
    const uint64_t count = 3 * BUSY_INTERVALS_MAX + 5, step = 10000, length = 4000;
    CHECK_EQ_INT(busy_new(&model, &busy), 0);
    for (uint64_t i = 1; i <= count; i++) {
        busy_operator(busy, i * step, i * step + length);
    }
    CHECK(cell_get(&model.busy_ns) <= (count - BUSY_INTERVALS_MAX) * length);
    CHECK(cell_get(&model.busy_ns) >= (count - BUSY_INTERVALS_MAX - MS / step) * length); /* counted in batches */
    busy_operator(busy, step, step + length);
    CHECK_EQ_U64(cell_get(&model.late_intervals), 1);
    /* The execution around them all has its gap as far back as intervals are kept. */
    busy_execution(busy, step, (count + 1) * step);
    busy_settle(busy);
    CHECK_EQ_U64(cell_get(&model.busy_ns), count * length);
    CHECK(cell_get(&model.gap_ns) >= (BUSY_INTERVALS_MAX - 1) * (step - length));
    CHECK(cell_get(&model.gap_ns) <= (BUSY_INTERVALS_MAX + BUSY_INTERVALS_MAX / 4 + 1) * (step - length));
    busy_free(busy);
}

static void check_restart(void) {
    static struct segment_model model;
    struct busy *busy;
    CHECK_EQ_INT(busy_new(&model, &busy), 0);
    busy_operator(busy, 50000 * MS, 50010 * MS);
    busy_restart(busy);
    busy_operator(busy, 1 * MS, 3 * MS);
    busy_settle(busy);
    CHECK_EQ_U64(cell_get(&model.busy_ns), 12 * MS);
    CHECK_EQ_U64(cell_get(&model.late_intervals), 0);
    busy_free(busy);
}

int main(void) {
    for (uint64_t number = 1; number <= 60; number++) {
        check_random_world(number);
    }
    check_many_intervals();
    check_restart();
    return 0;
}
