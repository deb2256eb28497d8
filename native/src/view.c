#include "view.h"

#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "mapping.h"

struct opstream_view {
    struct mapping mapping;
    struct opstream_view_info info;
    uint32_t models_seen, series_seen;
    uint64_t strings_seen; /* bytes */
    char *strings;         /* copy of STRINGS as far as seen */
    struct view_identity *identities;
    char names[MODELS_CAPACITY][sizeof(((struct segment_model *)0)->name)];
    uint32_t devices[MODELS_CAPACITY];
    struct opstream_counters counters; /* last good ones */
};

/* ---- Opening ---- */

static void fill_info(const struct segment_identity *identity, uint64_t segment_bytes, struct opstream_view_info *ret_info) {
    memcpy(ret_info->uuid, identity->uuid, sizeof(ret_info->uuid));
    ret_info->kind = identity->kind;
    ret_info->pid = identity->pid;
    ret_info->segment_bytes = segment_bytes;
    ret_info->created_wall_ns = identity->created_wall_ns;
    strcpy(ret_info->app, identity->app);
    strcpy(ret_info->labels, identity->labels);
    strcpy(ret_info->hosted_name, identity->hosted_name);
    strcpy(ret_info->config_digest, identity->config_digest);
}

int opstream_view_open(int fd, uint64_t max_bytes, opstream_view **ret_view) {
    struct mapping mapping;
    struct segment_identity identity;
    int status = mapping_open(fd, max_bytes, &mapping, &identity);
    if (status) {
        return status;
    }
    opstream_view *view = calloc(1, sizeof(*view));
    if (!view) {
        mapping_free(&mapping);
        return OPSTREAM_E_MEMORY;
    }
    view->mapping = mapping;
    fill_info(&identity, mapping.bytes, &view->info);
    /* Untouched memory costs nothing. */
    view->strings = malloc(mapping.tables[TABLE_STRINGS - 1].capacity);
    view->identities = malloc(mapping.tables[TABLE_SERIES - 1].capacity * sizeof(view->identities[0]));
    if (!view->strings || !view->identities) {
        opstream_view_free(view);
        return OPSTREAM_E_MEMORY;
    }
    *ret_view = view;
    return 0;
}

void opstream_view_free(opstream_view *view) {
    if (!view) {
        return;
    }
    mapping_free(&view->mapping);
    free(view->strings);
    free(view->identities);
    free(view);
}

int opstream_view_info(const opstream_view *view, struct opstream_view_info *ret_info) {
    *ret_info = view->info;
    return 0;
}

/* ---- Rows ---- */

static int see_models(opstream_view *view, uint64_t rows) {
    for (; view->models_seen < rows; view->models_seen++) {
        uint32_t row = view->models_seen;
        const struct segment_model *model = mapping_row(&view->mapping, TABLE_MODELS, row, sizeof(*model));
        if (!model) {
            return OPSTREAM_E_LAYOUT;
        }
        copy_words(view->names[row], model->name, sizeof(view->names[row]));
        if (!memchr(view->names[row], 0, sizeof(view->names[row]))) {
            return OPSTREAM_E_LAYOUT;
        }
        view->devices[row] = load_u32(&model->device);
    }
    return 0;
}

static int see_strings(opstream_view *view, uint64_t bytes) {
    if (bytes % 8) {
        return OPSTREAM_E_LAYOUT;
    }
    if (bytes <= view->strings_seen) {
        return 0;
    }
    const char *strings = mapping_row(&view->mapping, TABLE_STRINGS, view->strings_seen, bytes - view->strings_seen);
    if (!strings) {
        return OPSTREAM_E_LAYOUT;
    }
    copy_words(view->strings + view->strings_seen, strings, bytes - view->strings_seen);
    view->strings_seen = bytes;
    return 0;
}

static int string_at(const opstream_view *view, uint32_t place, const char **ret_text, uint32_t *ret_length) {
    uint64_t offset = (uint64_t)place * 8;
    uint32_t length;
    if (offset + 8 > view->strings_seen) {
        return OPSTREAM_E_LAYOUT;
    }
    memcpy(&length, view->strings + offset, sizeof(length));
    if (length > STRING_BYTES_MAX || offset + sizeof(length) + length >= view->strings_seen) {
        return OPSTREAM_E_LAYOUT;
    }
    *ret_text = view->strings + offset + sizeof(length);
    *ret_length = length;
    return 0;
}

static int see_series(opstream_view *view, uint64_t rows) {
    static const char other[] = "(other)";
    for (; view->series_seen < rows; view->series_seen++) {
        struct view_identity *identity = &view->identities[view->series_seen];
        const struct segment_series *series = mapping_row(&view->mapping, TABLE_SERIES, view->series_seen, sizeof(*series));
        if (!series) {
            return OPSTREAM_E_LAYOUT;
        }
        uint32_t name = load_u32(&series->name);
        identity->model_row = load_u32(&series->model_row);
        if (identity->model_row >= view->models_seen) {
            return OPSTREAM_E_LAYOUT;
        }
        int status = string_at(view, load_u32(&series->type), &identity->type, &identity->type_length);
        if (!status && name != NAME_OTHER) {
            status = string_at(view, name, &identity->name, &identity->name_length);
        }
        if (status) {
            return status;
        }
        if (name == NAME_OTHER) {
            identity->name = other;
            identity->name_length = sizeof(other) - 1;
        }
    }
    return 0;
}

int view_rows(opstream_view *view, uint32_t *ret_models, uint32_t *ret_series) {
    uint64_t models, series, strings;
    /* What a row of SERIES refers to was published before it. */
    if (mapping_used(&view->mapping, TABLE_SERIES, &series) || mapping_used(&view->mapping, TABLE_MODELS, &models) ||
        mapping_used(&view->mapping, TABLE_STRINGS, &strings) || see_models(view, models) || see_strings(view, strings) ||
        see_series(view, series)) {
        return OPSTREAM_E_LAYOUT;
    }
    *ret_models = view->models_seen;
    *ret_series = view->series_seen;
    return 0;
}

const struct view_identity *view_identity(const opstream_view *view, uint32_t row) {
    return &view->identities[row];
}

void view_model(opstream_view *view, uint32_t row, struct view_model *ret_model) {
    const struct segment_model *model = mapping_row(&view->mapping, TABLE_MODELS, row, sizeof(*model));
    *ret_model = (struct view_model){.name = view->names[row], .device = view->devices[row]};
    if (!model) {
        return;
    }
    ret_model->subscribed = load_word(&model->subscribed);
    ret_model->subscriptions = load_word(&model->subscriptions);
    ret_model->last_execution_wall_ns = load_word(&model->last_execution_wall_ns);
    ret_model->busy_ns = load_word(&model->busy_ns);
    ret_model->gap_ns = load_word(&model->gap_ns);
    ret_model->late_intervals = load_word(&model->late_intervals);
    ret_model->busy_created_wall_ns = load_word(&model->busy_created_wall_ns);
    ret_model->executions_created_wall_ns = load_word(&model->executions.created_wall_ns);
    ret_model->executions_sum_ns = load_word(&model->executions.sum_ns);
    copy_words(ret_model->executions, model->executions.cells, sizeof(ret_model->executions));
}

/* Both windows count while they are the present or the previous one. A reader's clock may be a little behind the writer's. */
static uint64_t longest_of(uint64_t window, uint64_t even_ns, uint64_t odd_ns, uint64_t now_ns) {
    uint64_t now = now_ns / WINDOW_NS, present = window & 1 ? odd_ns : even_ns, previous = window & 1 ? even_ns : odd_ns;
    if (window >= now) {
        return present > previous ? present : previous;
    }
    return window + 1 == now ? present : 0;
}

static void read_series(const struct segment_series *series, uint64_t now_ns, struct view_series *ret_series) {
    ret_series->created_wall_ns = series ? load_word(&series->duration.created_wall_ns) : 0;
    if (!ret_series->created_wall_ns) {
        return;
    }
    ret_series->sum_ns = load_word(&series->duration.sum_ns);
    ret_series->longest_ns =
        longest_of(load_word(&series->window), load_word(&series->longest_ns[0]), load_word(&series->longest_ns[1]), now_ns);
    copy_words(ret_series->cells, series->duration.cells, sizeof(ret_series->cells));
}

void view_series(opstream_view *view, uint32_t row, uint64_t now_ns, struct view_series *ret_series) {
    read_series(mapping_row(&view->mapping, TABLE_SERIES, row, sizeof(struct segment_series)), now_ns, ret_series);
}

void view_other(opstream_view *view, uint32_t row, uint64_t now_ns, struct view_series *ret_series) {
    read_series(mapping_row(&view->mapping, TABLE_OTHERS, row, sizeof(struct segment_series)), now_ns, ret_series);
}

/* ---- The publisher's own counts ---- */

static int count_models(opstream_view *view, struct opstream_counters *counters) {
    uint64_t rows;
    int status = mapping_used(&view->mapping, TABLE_MODELS, &rows);
    if (status) {
        return status;
    }
    counters->models_subscribed = counters->models_paused = counters->models_failed = 0;
    for (uint64_t row = 1; row < rows; row++) {
        const struct segment_model *model = mapping_row(&view->mapping, TABLE_MODELS, row, sizeof(*model));
        uint32_t state = model ? atomic_load_explicit((cell_u32 *)&model->state, memory_order_relaxed) : MODEL_UNSUBSCRIBED;
        counters->models_subscribed += state == MODEL_SUBSCRIBED;
        counters->models_paused += state == MODEL_PAUSED;
        counters->models_failed += state == MODEL_FAILED;
    }
    return 0;
}

int opstream_view_counters(opstream_view *view, int departed, uint64_t now_ns, struct opstream_counters *ret_counters) {
    const struct segment_counters *from = &view->mapping.head->counters;
    struct opstream_counters *counters = &view->counters;
    int status = count_models(view, counters);
    if (status) {
        return status;
    }
    budget_read(from, departed != 0, counters);
    counters->reader_cpu_ns = load_word(&from->reader_cpu_ns);
    counters->pipe_capacity_bytes = load_word(&from->pipe_capacity_bytes);
    uint64_t ppm = longest_of(load_word(&from->pipe_window), load_word(&from->pipe_high_water_ppm[0]),
                              load_word(&from->pipe_high_water_ppm[1]), now_ns);
    counters->pipe_high_water_ppm = ppm < 1000000 ? ppm : 1000000;
    uint64_t path = load_word(&from->reader_path), unit = load_word(&from->time_unit);
    counters->reader_path = path <= 2 ? (uint32_t)path : 0;
    counters->time_unit = unit <= 2 ? (uint32_t)unit : 0;
    *ret_counters = *counters;
    return 0;
}

int opstream_view_subscribe_errors(const opstream_view *view, struct opstream_subscribe_error *ret_errors, size_t *ret_count) {
    size_t count = 0;
    for (uint32_t i = 0; i < OPSTREAM_SUBSCRIBE_ERRORS_MAX; i++) {
        const struct segment_error *error = &view->mapping.head->errors[i];
        uint64_t code = load_word(&error->acl_error);
        if (code) {
            ret_errors[count++] =
                (struct opstream_subscribe_error){.acl_error = (int32_t)(uint32_t)code, .count = load_word(&error->count)};
        }
    }
    *ret_count = count;
    return 0;
}

int opstream_view_delay(const opstream_view *view, uint64_t *ret_cells, uint64_t *ret_sum_ns) {
    const struct segment_histogram *delay = &view->mapping.head->delay;
    *ret_sum_ns = load_word(&delay->sum_ns);
    copy_words(ret_cells, delay->cells, sizeof(delay->cells));
    return 0;
}
