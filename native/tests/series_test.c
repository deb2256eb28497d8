/* From (model, type, name) to a row, through every limit. */
#include <fcntl.h>

#include "check.h"
#include "label.h"
#include "recording.h"

#define NOW_NS (UINT64_C(100) * WINDOW_NS)

static struct segment_writer writer;
static struct series_table *table;

static void begin(uint32_t capacity) {
    struct segment_identity identity = {.kind = OPSTREAM_KIND_AGENT};
    CHECK_EQ_INT(segment_create(&identity, capacity, &writer), 0);
    CHECK_EQ_INT(series_table_new(&writer, &table), 0);
    CHECK_EQ_U64(segment_model_row(&writer, 1, 0, "m"), 1);
}

static void end(void) {
    series_table_free(table);
    segment_free(&writer);
}

static bool record(uint32_t model_row, const char *type, const char *name, uint64_t duration_ns) {
    return record_operator(table, model_row, type, name, duration_ns, 1, NOW_NS);
}

static uint64_t rows(void) {
    return cell_get(&writer.base->used[TABLE_SERIES - 1].rows);
}

static uint64_t executions(const struct segment_series *series) {
    uint64_t sum = 0;
    for (uint32_t cell = 0; cell < OPSTREAM_CELLS; cell++) {
        sum += cell_get(&series->duration.cells[cell]);
    }
    return sum;
}

static const char *string_at(uint32_t place) {
    return writer.strings + (uint64_t)place * 8 + 4;
}

static void check_rows(void) {
    begin(64);
    CHECK(record(1, "MatMul", "a", 10));
    CHECK(record(1, "MatMul", "a", 20));
    CHECK(record(1, "MatMul", "b", 30));
    CHECK(record(0, "MatMul", "a", 40));
    CHECK(record(1, "Mat", "Mula", 50)); /* the same letters, divided otherwise */
    CHECK(record(1, "", "", 60));
    CHECK_EQ_U64(rows(), 5);
    CHECK_EQ_U64(executions(&writer.series[0]), 2);
    CHECK_EQ_U64(cell_get(&writer.series[0].duration.sum_ns), 30);
    CHECK_EQ_STR(string_at(writer.series[0].type), "MatMul");
    CHECK_EQ_STR(string_at(writer.series[1].name), "b");
    CHECK_EQ_U64(writer.series[0].type, writer.series[1].type); /* stored once */
    CHECK_EQ_U64(writer.series[2].model_row, 0);
    end();
}

/* Every length, so that every way through the hash and the comparison is taken, with names that differ in their last byte only. */
static void check_lengths(void) {
    char name[64];
    begin(1024);
    memset(name, 'n', sizeof(name));
    for (int round = 0; round < 2; round++) {
        for (size_t length = 1; length <= 60; length++) {
            for (char last = 'a'; last <= 'c'; last++) {
                name[length - 1] = last;
                name[length] = '\0';
                CHECK(record(1, "T", name, 5));
                name[length - 1] = name[length] = 'n';
            }
        }
    }
    CHECK_EQ_U64(rows(), 180);
    for (uint32_t row = 0; row < 180; row++) {
        CHECK_EQ_U64(executions(&writer.series[row]), 2);
    }
    end();
}

static void check_longest(void) {
    begin(64);
    struct segment_series *row = &writer.series[0];
    const uint64_t even = NOW_NS;
    const struct {
        uint64_t duration_ns, now_ns, even_ns, odd_ns;
    } steps[] = {
        {70, even, 70, 0},
        {50, even, 70, 0},
        {90, even + 1, 90, 0},
        {20, even + WINDOW_NS, 90, 20},
        {30, even + 2 * WINDOW_NS, 30, 20},
        {40, even + 5 * WINDOW_NS, 0, 40},
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        CHECK(record_operator(table, 1, "T", "n", steps[i].duration_ns, 1, steps[i].now_ns));
        CHECK_EQ_U64(cell_get(&row->longest_ns[0]), steps[i].even_ns);
        CHECK_EQ_U64(cell_get(&row->longest_ns[1]), steps[i].odd_ns);
    }
    end();
}

static void check_long_names(void) {
    static char name[STRING_BYTES_MAX + 10], other_end[sizeof(name)];
    begin(64);
    memset(name, 'x', sizeof(name) - 1);
    memcpy(other_end, name, sizeof(name));
    other_end[sizeof(other_end) - 2] = 'y';
    CHECK(record(1, name, name, 1));
    CHECK(record(1, name, other_end, 1));
    CHECK(record(1, name, name, 1));
    CHECK_EQ_U64(rows(), 2);
    CHECK_EQ_U64(strlen(string_at(writer.series[0].name)), STRING_BYTES_MAX);
    char hash[17];
    snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)label_hash(other_end, strlen(other_end)));
    CHECK_EQ_STR(string_at(writer.series[1].name) + STRING_BYTES_MAX - 16, hash);
    end();
}

/* A sixteenth of the rows is for "(other)" of each type; then comes the model's row of last resort. */
static void check_full(void) {
    char text[32];
    begin(64);
    for (int i = 0; i < 60; i++) {
        snprintf(text, sizeof(text), "n%d", i);
        CHECK(record(1, "T", text, 1));
    }
    CHECK(!record(1, "T", "one too many", 7));
    CHECK(!record(1, "T", "another", 8));
    CHECK(record(1, "T", "n5", 1));
    CHECK_EQ_U64(rows(), 61);
    CHECK_EQ_U64(writer.series[60].name, NAME_OTHER);
    CHECK_EQ_STR(string_at(writer.series[60].type), "T");
    CHECK_EQ_U64(cell_get(&writer.series[60].duration.sum_ns), 15);
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof(text), "T%d", i);
        CHECK(!record(1, text, "n", 100));
    }
    CHECK_EQ_U64(rows(), 64);
    CHECK_EQ_U64(executions(&writer.others[1]), 7);
    CHECK_EQ_U64(cell_get(&writer.others[1].duration.sum_ns), 700);
    end();
}

/* Long names use up STRINGS before SERIES. */
static void check_strings_full(void) {
    char name[1001];
    begin(64);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    uint64_t own = 0;
    for (int i = 0; i < 40; i++) {
        memcpy(name, &(char[2]){(char)('a' + i / 26), (char)('a' + i % 26)}, 2);
        own += record(1, "T", name, 1);
    }
    CHECK_EQ_U64(own, 15); /* of 16 KiB but a sixteenth */
    CHECK_EQ_U64(executions(&writer.series[15]), 25);
    CHECK_EQ_U64(writer.series[15].name, NAME_OTHER);
    end();
}

/* Nobody may be ended by SIGBUS because there is no page to be had. Descriptors that can't allocate stand for that; it is asked for again
 * only after a second. */
static void check_no_pages(void) {
    begin(8192);
    CHECK(record(1, "T", "n", 1));
    int fd = writer.fd, null = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK(null >= 0);
    writer.fd = null;
    char name[16];
    uint64_t own = 0;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        own += record(1, "T", name, 1);
    }
    CHECK(own > 50 && own < 200); /* what the first chunk had room for */
    CHECK_EQ_U64(executions(&writer.others[1]), 1000 - own);
    writer.fd = fd;
    close(null);
    CHECK(!record(1, "T", "n999", 1));
    CHECK(record_operator(table, 1, "T", "n999", 1, 1, NOW_NS + UINT64_C(1000000000)));
    end();
}

int main(void) {
    check_rows();
    check_lengths();
    check_longest();
    check_long_names();
    check_full();
    check_strings_full();
    check_no_pages();
    return 0;
}
