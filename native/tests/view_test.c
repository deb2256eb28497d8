/* The reading side: what an honest segment says, what rows a hostile one is refused for, and a publisher at full speed. */
#include <pthread.h>

#include "forgery.h"
#include "view.h"

static opstream_view *view_of(int fd) {
    opstream_view *view;
    CHECK_EQ_INT(opstream_view_open(fd, MAX_BYTES, &view), 0);
    return view;
}

/* ---- Honest ---- */

static void check_info(void) {
    struct segment_writer writer = new_segment(64);
    opstream_view *view = view_of(writer.fd);
    struct opstream_view_info info;
    CHECK_EQ_INT(opstream_view_info(view, &info), 0);
    CHECK(!memcmp(info.uuid, writer.base->header.identity.uuid, sizeof(info.uuid)));
    CHECK_EQ_U64(info.kind, OPSTREAM_KIND_HOSTED);
    CHECK_EQ_U64(info.pid, getpid());
    CHECK_EQ_U64(info.segment_bytes, writer.bytes);
    CHECK_EQ_STR(info.app, "app");
    CHECK_EQ_STR(info.labels, "team=a");
    CHECK_EQ_STR(info.hosted_name, "h");
    CHECK_EQ_STR(info.config_digest, "d");
    opstream_view_free(view);
    segment_free(&writer);
}

static void check_rows(void) {
    struct segment_writer writer = new_segment(64);
    struct series_table *table;
    CHECK_EQ_INT(series_table_new(&writer, &table), 0);
    CHECK_EQ_U64(segment_model_row(&writer, 1, 3, "m"), 1);
    opstream_view *view = view_of(writer.fd);
    uint32_t models, series;
    CHECK_EQ_INT(view_rows(view, &models, &series), 0);
    CHECK_EQ_U64(models, 2);
    CHECK_EQ_U64(series, 0);
    for (int i = 0; i < 61; i++) {
        char name[8];
        snprintf(name, sizeof(name), "n%d", i);
        record_operator(table, 1, "T", name, 100, 5, NOW_NS);
    }
    CHECK_EQ_INT(view_rows(view, &models, &series), 0);
    CHECK_EQ_U64(series, 61);
    const struct view_identity *identity = view_identity(view, 59);
    CHECK(identity->model_row == 1 && identity->type_length == 1 && identity->name_length == 3 && !memcmp(identity->name, "n59", 4) &&
          *identity->type == 'T');
    CHECK(!strcmp(view_identity(view, 60)->name, "(other)"));
    struct view_series row;
    view_series(view, 59, NOW_NS, &row);
    CHECK(row.created_wall_ns == 5 && row.sum_ns == 100 && row.longest_ns == 100 && row.cells[0] == 1 && row.cells[1] == 0);
    view_series(view, 59, NOW_NS + WINDOW_NS, &row);
    CHECK_EQ_U64(row.longest_ns, 100);
    view_series(view, 59, NOW_NS + 2 * WINDOW_NS, &row);
    CHECK_EQ_U64(row.longest_ns, 0);
    view_series(view, 59, NOW_NS - WINDOW_NS, &row); /* a reader's clock that is read a little too early */
    CHECK_EQ_U64(row.longest_ns, 100);
    view_other(view, 1, NOW_NS, &row);
    CHECK_EQ_U64(row.created_wall_ns, 0);
    struct view_model model;
    view_model(view, 1, &model);
    CHECK_EQ_STR(model.name, "m");
    CHECK_EQ_U64(model.device, 3);
    opstream_view_free(view);
    series_table_free(table);
    segment_free(&writer);
}

static void check_identity(const struct opstream_counters *counters) {
    CHECK_EQ_U64(counters->records_read, counters->records_recorded + counters->records_corrupt + counters->records_name +
                                             counters->records_time + counters->records_interrupted);
}

static void check_counters(void) {
    struct segment_writer writer = new_segment(64);
    struct segment_counters *to = &writer.base->counters;
    opstream_view *view = view_of(writer.fd);
    struct opstream_counters counters;
    cell_add(&to->live.records_read, 10);
    cell_add(&to->live.records_recorded, 7);
    cell_add(&to->live.records_corrupt, 2);
    cell_set(&to->time_unit, 2);
    cell_set(&to->reader_path, 77);
    cell_set(&to->pipe_window, NOW_NS / WINDOW_NS);
    cell_set(&to->pipe_high_water_ppm[0], 1234);
    CHECK_EQ_U64(segment_model_row(&writer, 1, 0, "m"), 1);
    segment_model_set_state(&writer, 1, MODEL_PAUSED, 1);
    segment_commit(&writer, 1);
    cell_add(&to->live.records_read, 5);
    CHECK_EQ_INT(opstream_view_counters(view, 0, NOW_NS, &counters), 0);
    check_identity(&counters);
    CHECK_EQ_U64(counters.records_read, 9);
    CHECK_EQ_U64(counters.records_interrupted, 0);
    CHECK_EQ_U64(counters.models_paused, 1);
    CHECK_EQ_U64(counters.time_unit, 2);
    CHECK_EQ_U64(counters.reader_path, 0);
    CHECK_EQ_U64(counters.pipe_high_water_ppm, 1234);

    /* In the middle of a commit the last good answer holds. */
    cell_add(&to->sequence, 1);
    cell_set(&to->committed.records_read, 1000);
    CHECK_EQ_INT(opstream_view_counters(view, 0, NOW_NS, &counters), 0);
    CHECK_EQ_U64(counters.records_read, 9);

    /* Dead there and then: 6 were read but not recorded, and two and a half more had left the pipe. */
    cell_set(&to->record_bytes, 80);
    cell_set(&to->bytes_taken, 1400);
    cell_set(&to->bytes_settled, 1200);
    CHECK_EQ_INT(opstream_view_counters(view, 1, NOW_NS, &counters), 0);
    check_identity(&counters);
    CHECK_EQ_U64(counters.records_read, 17);
    CHECK_EQ_U64(counters.records_interrupted, 8);
    CHECK_EQ_U64(counters.bytes_discarded, 40);
    opstream_view_free(view);
    segment_free(&writer);
}

static void check_lying_counters(void) {
    struct segment_writer writer = new_segment(64);
    struct segment_counters *to = &writer.base->counters;
    opstream_view *view = view_of(writer.fd);
    struct opstream_counters counters, before = {0};
    const uint64_t lies[][3] = {{5, 9, 1}, {UINT64_MAX, UINT64_MAX, UINT64_MAX}, {0, 0, 0}, {3, UINT64_MAX / 2, 7}};
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        for (int departed = 0; departed < 2; departed++) {
            cell_set(&to->live.records_read, lies[i][0]);
            cell_set(&to->live.records_recorded, lies[i][1]);
            cell_set(&to->live.records_name, lies[i][2]);
            cell_set(&to->bytes_taken, lies[i][2]);
            segment_commit(&writer, 0);
            CHECK_EQ_INT(opstream_view_counters(view, departed, NOW_NS, &counters), 0);
            check_identity(&counters);
            CHECK(counters.records_read >= before.records_read && counters.records_recorded >= before.records_recorded &&
                  counters.records_name >= before.records_name);
            CHECK(counters.records_read >= counters.records_recorded);
            before = counters;
        }
    }
    opstream_view_free(view);
    segment_free(&writer);
}

static void check_errors_and_delay(void) {
    struct segment_writer writer = new_segment(64);
    opstream_view *view = view_of(writer.fd);
    struct opstream_subscribe_error errors[OPSTREAM_SUBSCRIBE_ERRORS_MAX];
    uint64_t cells[OPSTREAM_CELLS], sum_ns;
    size_t count;
    segment_count_error(&writer, 200007);
    segment_count_error(&writer, -5);
    segment_count_error(&writer, -5);
    CHECK_EQ_INT(opstream_view_subscribe_errors(view, errors, &count), 0);
    CHECK_EQ_U64(count, 2);
    CHECK(errors[0].acl_error == 200007 && errors[0].count == 1 && errors[1].acl_error == -5 && errors[1].count == 2);
    cell_set(&writer.base->delay.cells[9], 4);
    cell_set(&writer.base->delay.sum_ns, 800);
    CHECK_EQ_INT(opstream_view_delay(view, cells, &sum_ns), 0);
    CHECK(cells[9] == 4 && cells[10] == 0 && sum_ns == 800);
    opstream_view_free(view);
    segment_free(&writer);
}

/* ---- Hostile ---- */

static struct segment_model *models_in(struct segment *segment) {
    return (void *)((char *)segment + segment->header.directory[0].offset);
}
static struct segment_series *series_in(struct segment *segment) {
    return (void *)((char *)segment + segment->header.directory[2].offset);
}
static char *strings_in(struct segment *segment) {
    return (char *)segment + segment->header.directory[3].offset;
}

static void lie_nothing(struct segment *segment) {
    (void)segment;
}
static void lie_used_models(struct segment *segment) {
    cell_set(&segment->used[0].rows, 65);
}
static void lie_used_series(struct segment *segment) {
    cell_set(&segment->used[2].rows, 65);
}
static void lie_used_strings(struct segment *segment) {
    cell_set(&segment->used[3].rows, UINT64_MAX - 7);
}
static void lie_used_crooked(struct segment *segment) {
    cell_add(&segment->used[3].rows, 1);
}
static void lie_model_name(struct segment *segment) {
    memset(models_in(segment)[0].name, 'x', 256);
}
static void lie_model_row(struct segment *segment) {
    series_in(segment)[0].model_row = 1;
}
static void lie_string_place(struct segment *segment) {
    series_in(segment)[0].type = UINT32_MAX - 1;
}
static void lie_string_at_end(struct segment *segment) {
    series_in(segment)[0].name = (uint32_t)(cell_get(&segment->used[3].rows) / 8);
}
static void lie_string_length(struct segment *segment) {
    memset(strings_in(segment), 0xff, 4);
}
static void lie_string_beyond(struct segment *segment) {
    memcpy(strings_in(segment), &(uint32_t){28}, 4);
}

static void check_torn_rows(void) {
    static void (*const lies[])(struct segment *) = {lie_used_models,   lie_used_series,  lie_used_strings, lie_used_crooked,
                                                     lie_model_name,    lie_model_row,    lie_string_place, lie_string_at_end,
                                                     lie_string_length, lie_string_beyond};
    uint32_t models, series;
    int honest = lying_memfd(lie_nothing);
    opstream_view *view = view_of(honest);
    CHECK_EQ_INT(view_rows(view, &models, &series), 0);
    opstream_view_free(view);
    close(honest);
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        int fd = lying_memfd(lies[i]);
        view = view_of(fd);
        CHECK_EQ_INT(view_rows(view, &models, &series), OPSTREAM_E_LAYOUT);
        opstream_view_free(view);
        close(fd);
    }
}

/* Reading must not make a file grow: the pages would be the reader's. */
static void check_holes(void) {
    struct segment_writer writer = new_segment(8192);
    atomic_store(&writer.base->used[TABLE_SERIES - 1].rows, 8192);
    opstream_view *view = view_of(writer.fd);
    uint32_t models, series;
    off_t hole = lseek(writer.fd, 0, SEEK_HOLE);
    CHECK_EQ_INT(view_rows(view, &models, &series), OPSTREAM_E_LAYOUT);
    struct view_series row;
    view_series(view, 5, NOW_NS, &row);
    CHECK_EQ_U64(row.created_wall_ns, 0);
    CHECK_EQ_U64(lseek(writer.fd, 0, SEEK_HOLE), hole);
    CHECK_EQ_INT(lseek(writer.fd, (off_t)writer.base->header.directory[TABLE_SERIES - 1].offset, SEEK_DATA), -1);
    opstream_view_free(view);
    segment_free(&writer);
}

/* ---- At full speed ---- */

static atomic_bool stop;

static void *publish(void *context) {
    struct segment_writer *writer = context;
    struct segment_totals *live = &writer->base->counters.live;
    struct series_table *table;
    CHECK_EQ_INT(series_table_new(writer, &table), 0);
    for (uint32_t i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%u", i / 8 % 600);
        cell_add(&live->records_read, 1);
        if (i % 16 == 5) {
            cell_add(&live->records_corrupt, 1);
        } else {
            if (!record_operator(table, i % 2, "T", name, i, 1, NOW_NS)) {
                cell_add(&live->records_overflowed, 1);
            }
            cell_add(&live->records_recorded, 1);
        }
        if (i % 4 == 0) {
            segment_commit(writer, 0);
        }
    }
    series_table_free(table);
    return NULL;
}

static void check_full_speed(void) {
    struct segment_writer writer = new_segment(512);
    CHECK_EQ_U64(segment_model_row(&writer, 1, 0, "m"), 1);
    opstream_view *view = view_of(writer.fd);
    struct opstream_counters counters, before = {0};
    pthread_t thread;
    CHECK_EQ_INT(pthread_create(&thread, NULL, publish, &writer), 0);
    /* Until all rows have been seen to come, and a good many different commits. */
    uint32_t models, series = 0;
    for (int changes = 0; changes < 2000 || series < 480;) {
        CHECK_EQ_INT(opstream_view_counters(view, 0, NOW_NS, &counters), 0);
        check_identity(&counters);
        CHECK_EQ_U64(counters.records_interrupted, 0);
        CHECK(counters.records_read >= before.records_read && counters.records_overflowed <= counters.records_recorded);
        changes += counters.records_read != before.records_read;
        before = counters;
        CHECK_EQ_INT(view_rows(view, &models, &series), 0);
        for (uint32_t i = series > 4 ? series - 4 : 0; i < series; i++) {
            const struct view_identity *identity = view_identity(view, i);
            struct view_series row;
            CHECK(identity->type_length == 1 && identity->type[0] == 'T' && (identity->name[0] == 'n' || identity->name[0] == '('));
            view_series(view, i, NOW_NS, &row);
        }
    }
    atomic_store(&stop, true);
    CHECK_EQ_INT(pthread_join(thread, NULL), 0);
    opstream_view_free(view);
    segment_free(&writer);
}

int main(void) {
    check_info();
    check_rows();
    check_counters();
    check_lying_counters();
    check_errors_and_delay();
    check_torn_rows();
    check_holes();
    check_full_speed();
    return 0;
}
