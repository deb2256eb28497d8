/* Views of several publishers become one exposition, or leave it as it was. */
#include <sys/mman.h>

#include "check.h"
#include "merge.h"
#include "recording.h"

#define NOW_NS (UINT64_C(100) * WINDOW_NS)
#define MAX_BYTES (UINT64_C(64) << 20)

struct publisher {
    struct segment_writer writer;
    struct series_table *table;
    opstream_view *view;
};

static void open_publisher(struct publisher *ret_publisher) {
    struct segment_identity identity = {.kind = OPSTREAM_KIND_AGENT};
    CHECK_EQ_INT(segment_create(&identity, 64, &ret_publisher->writer), 0);
    CHECK_EQ_INT(series_table_new(&ret_publisher->writer, &ret_publisher->table), 0);
    CHECK_EQ_INT(opstream_view_open(ret_publisher->writer.fd, MAX_BYTES, &ret_publisher->view), 0);
}

static void close_publisher(struct publisher *publisher) {
    opstream_view_free(publisher->view);
    series_table_free(publisher->table);
    segment_free(&publisher->writer);
}

static void record(struct publisher *publisher, uint32_t model_row, const char *type, const char *name, uint64_t duration_ns,
                   uint64_t wall_ns) {
    record_operator(publisher->table, model_row, type, name, duration_ns, wall_ns, NOW_NS);
}

static opstream_exposition *new_exposition(void) {
    opstream_exposition *exposition;
    CHECK_EQ_INT(opstream_exposition_new(&exposition), 0);
    return exposition;
}

static const struct merged_series *find(opstream_exposition *exposition, const char *app, const char *type, const char *name) {
    CHECK_EQ_INT(merge_sort(exposition), 0);
    for (size_t i = 0; i < exposition->series_count; i++) {
        const struct merged_series *series = exposition->series[i];
        if (!strcmp(series->type->model->app, app) && !strcmp(series->type->type, type) && !strcmp(series->name, name)) {
            return series;
        }
    }
    return NULL;
}

static void check_merging(void) {
    struct publisher a, b;
    open_publisher(&a);
    open_publisher(&b);
    opstream_exposition *exposition = new_exposition();
    segment_model_row(&a.writer, 1, 0, "m");
    segment_model_row(&b.writer, 9, 0, "m");
    segment_model_set_state(&a.writer, 1, MODEL_SUBSCRIBED, NOW_NS - 300);
    segment_model_set_state(&b.writer, 1, MODEL_SUBSCRIBED, NOW_NS - 500);
    cell_set(&a.writer.models[1].busy_ns, 11);
    cell_set(&b.writer.models[1].busy_ns, 22);
    cell_set(&a.writer.models[1].last_execution_wall_ns, 70);
    cell_set(&b.writer.models[1].last_execution_wall_ns, 60);
    record(&a, 1, "T", "n", 100, 50);
    record(&b, 1, "T", "n", 300, 40);
    record(&b, 1, "T", "only b's", 5, 40);
    CHECK_EQ_INT(opstream_exposition_add(exposition, a.view, "app", "", NOW_NS, NOW_NS), 0);
    CHECK_EQ_INT(opstream_exposition_add(exposition, b.view, "app", "", NOW_NS, NOW_NS - 400), 0); /* dead since */
    const struct merged_series *series = find(exposition, "app", "T", "n");
    CHECK(series != NULL);
    CHECK_EQ_U64(exposition->series_count, 2);
    CHECK_EQ_U64(series->created_wall_ns, 40);
    CHECK_EQ_U64(series->sum_ns, 400);
    CHECK_EQ_U64(series->longest_ns, 300);
    CHECK_EQ_U64(series->cells[0], 1);
    CHECK_EQ_U64(series->cells[opstream_cell_of(300)], 1);
    const struct merged_model *model = series->type->model;
    CHECK_EQ_U64(model->busy_ns, 33);
    CHECK_EQ_U64(model->last_execution_wall_ns, 70);
    CHECK_EQ_U64(model->subscribed_ns, 300 + 100);
    CHECK_EQ_U64(model->subscriptions, 2);
    /* Two operators with 3 each, one type, and of the model info, subscribed time and last execution. */
    CHECK_EQ_U64(opstream_exposition_series(exposition), 2 * 3 + 1 + 3);

    /* Another app, other labels: other series. */
    CHECK_EQ_INT(opstream_exposition_add(exposition, a.view, "app2", "", NOW_NS, NOW_NS), 0);
    CHECK_EQ_INT(opstream_exposition_add(exposition, a.view, "app", ",pod=\"x\"", NOW_NS, NOW_NS), 0);
    CHECK_EQ_U64(find(exposition, "app2", "T", "n")->sum_ns, 100);
    CHECK_EQ_U64(exposition->series_count, 4);
    opstream_exposition_free(exposition);
    close_publisher(&a);
    close_publisher(&b);
}

static void check_invalid_text(void) {
    struct publisher publisher;
    open_publisher(&publisher);
    opstream_exposition *exposition = new_exposition();
    record(&publisher, 0, "T", "a\xff", 1, 1);
    record(&publisher, 0, "T", "a\xfe", 2, 1); /* the same as a label */
    record(&publisher, 0, "T\xc3\xa9\xc3", "\xed\xa0\x80z", 4, 1);
    CHECK_EQ_INT(opstream_exposition_add(exposition, publisher.view, "app", "", NOW_NS, NOW_NS), 0);
    CHECK_EQ_U64(find(exposition, "app", "T", "a\xef\xbf\xbd")->sum_ns, 3);
    CHECK_EQ_U64(find(exposition, "app", "T\xc3\xa9\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz")->sum_ns, 4);
    opstream_exposition_free(exposition);
    close_publisher(&publisher);
}

/* The last of its rows is torn: nothing of it may have been added. */
static void check_torn(void) {
    struct publisher honest, torn;
    open_publisher(&honest);
    open_publisher(&torn);
    opstream_exposition *exposition = new_exposition();
    record(&honest, 0, "T", "n", 1, 1);
    record(&torn, 0, "T", "n", 1, 1);
    record(&torn, 0, "T", "last", 1, 1);
    torn.writer.series[1].name = 4000;
    CHECK_EQ_INT(opstream_exposition_add(exposition, honest.view, "app", "", NOW_NS, NOW_NS), 0);
    size_t before = opstream_exposition_series(exposition);
    CHECK_EQ_INT(opstream_exposition_add(exposition, torn.view, "app", "", NOW_NS, NOW_NS), OPSTREAM_E_LAYOUT);
    CHECK_EQ_U64(opstream_exposition_series(exposition), before);
    CHECK_EQ_U64(find(exposition, "app", "T", "n")->sum_ns, 1);
    opstream_exposition_free(exposition);
    close_publisher(&honest);
    close_publisher(&torn);
}

static void check_order(void) {
    struct publisher publisher;
    open_publisher(&publisher);
    opstream_exposition *exposition = new_exposition();
    char name[8];
    segment_model_row(&publisher.writer, 1, 1, "a");
    segment_model_row(&publisher.writer, 2, 0, "c");
    segment_model_row(&publisher.writer, 3, 0, "b");
    for (int i = 0; i < 25; i++) {
        snprintf(name, sizeof(name), "n%02d", i * 7 % 25);
        record(&publisher, 1 + (uint32_t)i % 3, i % 4 ? "T" : "S", name, 1, 1);
    }
    CHECK_EQ_INT(opstream_exposition_add(exposition, publisher.view, "z", "", NOW_NS, NOW_NS), 0);
    CHECK_EQ_INT(opstream_exposition_add(exposition, publisher.view, "y", "", NOW_NS, NOW_NS), 0);
    CHECK_EQ_INT(merge_sort(exposition), 0);
    CHECK_EQ_U64(exposition->series_count, 50);
    for (size_t i = 1; i < 50; i++) {
        const struct merged_series *a = exposition->series[i - 1], *b = exposition->series[i];
        const struct merged_model *of_a = a->type->model, *of_b = b->type->model;
        int order = strcmp(of_a->app, of_b->app);
        order = order ? order : (int)of_a->device - (int)of_b->device;
        order = order ? order : strcmp(of_a->name, of_b->name);
        order = order ? order : strcmp(a->type->type, b->type->type);
        CHECK((order ? order : strcmp(a->name, b->name)) < 0);
    }
    opstream_exposition_free(exposition);
    close_publisher(&publisher);
}

int main(void) {
    check_merging();
    check_invalid_text();
    check_torn();
    check_order();
    return 0;
}
