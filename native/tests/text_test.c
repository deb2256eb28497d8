/* What a scrape shows, byte for byte. With an argument it writes the text there instead of comparing: so data/exposition.prom is made
 * again. */
#include <errno.h>
#include <fcntl.h>

#include "busy.h"
#include "check.h"
#include "histogram.h"
#include "recording.h"

#define NOW_NS (UINT64_C(100) * WINDOW_NS)
#define WALL_NS UINT64_C(1700000000123456789)
#define DEFAULT_OPERATOR_BOUNDS (((UINT32_C(1) << 19) - 1) << 3) /* 1 µs to 1 s */
#define DEFAULT_MODEL_BOUNDS (((UINT32_C(1) << 16) - 1) << 12)   /* 1 ms to 100 s */

static void record(struct series_table *table, uint32_t model_row, const char *type, const char *name, uint64_t duration_ns) {
    record_operator(table, model_row, type, name, duration_ns, WALL_NS, NOW_NS);
}

static void fill(struct segment_writer *writer) {
    struct series_table *table;
    struct busy *busy;
    CHECK_EQ_INT(series_table_new(writer, &table), 0);
    CHECK_EQ_U64(segment_model_row(writer, 1, 0, "resnet50"), 1);
    CHECK_EQ_U64(segment_model_row(writer, 2, 7, "a \"quoted\" \\ name\nof two lines"), 2);
    segment_model_set_state(writer, 1, MODEL_SUBSCRIBED, NOW_NS - UINT64_C(2500000000));
    segment_model_set_state(writer, 2, MODEL_SUBSCRIBED, NOW_NS - UINT64_C(2000000000));
    segment_model_set_state(writer, 2, MODEL_UNSUBSCRIBED, NOW_NS - UINT64_C(1000000000));

    CHECK_EQ_INT(busy_new(&writer->models[1], &busy), 0);
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t start = 1000000 + i * 2000000;
        record(table, 1, "MatMul", "layer/0/MatMul", 250000 + i);
        record(table, 1, "MatMul", "layer/1/MatMul", 1000);
        record(table, 1, "Conv2D", "conv", 1001);
        busy_operator(busy, start, start + 250000 + i);
        busy_operator(busy, start + 200000, start + 300000);
        busy_execution(busy, start, start + 1500000);
        histogram_add(&writer->models[1].executions, 1500000, WALL_NS);
    }
    busy_settle(busy);
    busy_free(busy);
    cell_set(&writer->models[1].busy_created_wall_ns, WALL_NS);
    cell_set(&writer->models[1].last_execution_wall_ns, WALL_NS);
    record(table, 1, "Cast", "longer than every bound", UINT64_C(200000000000));

    record(table, 0, "Cast", "of a model that nobody subscribed", 50);
    char name[301];
    memset(name, 'n', sizeof(name));
    name[300] = '\0';
    memcpy(name + 183, "\xe2\x82\xac", 3); /* would be cut in two */
    record(table, 0, "Cast", name, 7);
    record(table, 0, "Bad\xff", "q\"b\\l\n", 7);
    series_table_free(table);
}

static char *render(const struct opstream_exposition_options *options, size_t *ret_length) {
    struct segment_identity identity = {.kind = OPSTREAM_KIND_AGENT};
    struct segment_writer writer;
    opstream_view *view;
    opstream_exposition *exposition;
    const char *bytes;
    CHECK_EQ_INT(segment_create(&identity, 64, &writer), 0);
    fill(&writer);
    CHECK_EQ_INT(opstream_view_open(writer.fd, UINT64_MAX, &view), 0);
    CHECK_EQ_INT(opstream_exposition_new(&exposition), 0);
    CHECK_EQ_INT(opstream_exposition_text(exposition, options, &bytes, ret_length), 0);
    CHECK_EQ_U64(*ret_length, 0);
    CHECK_EQ_INT(opstream_exposition_add(exposition, view, "server", "", NOW_NS, NOW_NS), 0);
    CHECK_EQ_INT(opstream_exposition_add(exposition, view, "trainer", ",pod=\"x-0\"", NOW_NS + 2 * WINDOW_NS, NOW_NS), 0);
    CHECK_EQ_INT(opstream_exposition_text(exposition, options, &bytes, ret_length), 0);
    char *text = malloc(*ret_length + 1);
    CHECK(text != NULL);
    memcpy(text, bytes, *ret_length);
    text[*ret_length] = '\0';
    /* Again the same. */
    CHECK_EQ_INT(opstream_exposition_text(exposition, options, &bytes, ret_length), 0);
    CHECK(strlen(text) == *ret_length && !memcmp(text, bytes, *ret_length));
    opstream_exposition_free(exposition);
    opstream_view_free(view);
    segment_free(&writer);
    return text;
}

static void check_golden(const char *text, size_t length) {
    char path[4096];
    const char *slash = strrchr(__FILE__, '/');
    snprintf(path, sizeof(path), "%.*s/data/exposition.prom", slash ? (int)(slash - __FILE__) : 1, slash ? __FILE__ : ".");
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    size_t line = 1;
    for (size_t i = 0; i < length; i++) {
        int golden = fgetc(file);
        if (golden != (unsigned char)text[i]) {
            CHECK_FAIL("line %zu of %s differs", line, path);
        }
        line += golden == '\n';
    }
    CHECK_EQ_INT(fgetc(file), EOF);
    fclose(file);
}

static size_t lines_with(const char *text, const char *part) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part)) {
        count++;
    }
    return count;
}

static void check_options(void) {
    struct opstream_exposition_options options = {
        .operator_bounds = UINT32_MAX, .model_bounds = 0, .label_bytes_max = 0, .per_operator = 1};
    size_t length;
    char *text = render(&options, &length);
    CHECK_EQ_U64(lines_with(text, "ascend_op_name_duration_seconds_count{"), 14);
    CHECK_EQ_U64(lines_with(text, "ascend_op_name_duration_seconds_bucket{"), 14 * (OPSTREAM_CLASSIC_BOUNDS + 1));
    CHECK_EQ_U64(lines_with(text, "ascend_model_execution_duration_seconds_bucket{"), 2);
    CHECK_EQ_U64(lines_with(text, "op_name=\"layer/0/MatMul\""),
                 2 * (3 + OPSTREAM_CLASSIC_BOUNDS + 3)); /* 14 bytes: shorter than a hash is never cut */
    CHECK_EQ_U64(lines_with(text, "longer than every bound"), 0);
    free(text);
}

int main(int argc, char **argv) {
    struct opstream_exposition_options options = {DEFAULT_OPERATOR_BOUNDS, DEFAULT_MODEL_BOUNDS, 200, 0};
    size_t length;
    char *text = render(&options, &length);
    if (argc > 1) {
        FILE *file = fopen(argv[1], "we");
        CHECK(file != NULL);
        CHECK_EQ_U64(fwrite(text, 1, length, file), length);
        CHECK_EQ_INT(fclose(file), 0);
        free(text);
        return 0;
    }
    check_golden(text, length);
    free(text);
    check_options();
    return 0;
}
