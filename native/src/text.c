#include <stdlib.h>

#include "label.h"
#include "merge.h"
#include "out.h"

/* As prometheus-client prints floats. */
static const char *const bound_texts[OPSTREAM_CLASSIC_BOUNDS] = {
    "1e-07", "2e-07", "5e-07", "1e-06", "2e-06", "5e-06", "1e-05", "2e-05", "5e-05", "0.0001", "0.0002", "0.0005", "0.001", "0.002",
    "0.005", "0.01",  "0.02",  "0.05",  "0.1",   "0.2",   "0.5",   "1.0",   "2.0",   "5.0",    "10.0",   "20.0",   "50.0",  "100.0"};

#define LINE_BYTES ((size_t)112) /* of a line, what isn't a label's value */

/* A name that may be too long for a label; `max` bytes count before escaping. */
static void put_name(struct out *out, const char *text, size_t length, uint32_t max) {
    char cut[3 * STRING_BYTES_MAX + 1];
    if (max < LABEL_HASH_DIGITS) {
        max = LABEL_HASH_DIGITS;
    }
    if (length > max) {
        cut[label_cut(text, length, max, cut)] = '\0';
        text = cut;
    }
    out_escaped(out, text);
}

/* ---- Labels ---- */

/* The labels of the present series, of which models' and types' part stays while they do. */
struct labels {
    struct out out;
    const struct merged_model *model;
    const struct merged_type *type;
    size_t model_length, type_length;
    uint32_t bytes_max;
};

static bool set_model(struct labels *labels, const struct merged_model *model) {
    struct out *out = &labels->out;
    size_t app = strlen(model->app), name = strlen(model->name);
    if (labels->model != model) {
        out->length = 0;
        if (!out_reserve(out, 2 * (app + name) + 64)) {
            return false;
        }
        out_text(out, "app=\"");
        out_escaped(out, model->app);
        out_text(out, "\",device=\"");
        if (model->device == DEVICE_OTHER) {
            out_text(out, "(other)");
        } else {
            out_number(out, model->device);
        }
        out_text(out, "\",model=\"");
        out_escaped(out, model->name);
        out_text(out, "\"");
        labels->model = model;
        labels->model_length = out->length;
        labels->type = NULL;
    }
    out->length = labels->model_length;
    return true;
}

static bool set_type(struct labels *labels, const struct merged_type *type) {
    struct out *out = &labels->out;
    if (labels->type != type) {
        if (!set_model(labels, type->model) || !out_reserve(out, 2 * (size_t)type->type_length + 64)) {
            return false;
        }
        out_text(out, ",op_type=\"");
        put_name(out, type->type, type->type_length, labels->bytes_max);
        out_text(out, "\"");
        labels->type = type;
        labels->type_length = out->length;
    }
    out->length = labels->type_length;
    return true;
}

static bool set_series(struct labels *labels, const struct merged_series *series) {
    struct out *out = &labels->out;
    if (!set_type(labels, series->type) || !out_reserve(out, 2 * (size_t)series->name_length + 64)) {
        return false;
    }
    out_text(out, ",op_name=\"");
    put_name(out, series->name, series->name_length, labels->bytes_max);
    out_text(out, "\"");
    return true;
}

/* What the publisher passes follows the contract's own. */
static bool set_extra(struct labels *labels, const struct merged_model *model) {
    size_t length = strlen(model->labels);
    if (!out_reserve(&labels->out, length)) {
        return false;
    }
    out_put(&labels->out, model->labels, length);
    return true;
}

/* ---- Families ---- */

struct family {
    const char *name, *type, *help;
};

static bool put_header(struct out *out, const struct family *family) {
    if (!out_reserve(out, 2 * strlen(family->name) + strlen(family->help) + 64)) {
        return false;
    }
    out_text(out, "# HELP ");
    out_text(out, family->name);
    out_text(out, " ");
    out_text(out, family->help);
    out_text(out, "\n# TYPE ");
    out_text(out, family->name);
    out_text(out, " ");
    out_text(out, family->type);
    out_text(out, "\n");
    return true;
}

/* Begins a sample's line, up to its value, for which there is room. */
static bool put_sample(struct out *out, const char *name, const struct labels *labels) {
    size_t length = strlen(name);
    if (!out_reserve(out, length + labels->out.length + OUT_NUMBER_BYTES + 8)) {
        return false;
    }
    out_put(out, name, length);
    out_put(out, "{", 1);
    out_put(out, labels->out.bytes, labels->out.length);
    out_put(out, "} ", 2);
    return true;
}

/* Begins a bucket's line: all of a histogram begin alike, so each but the first is a copy. */
static void put_bucket(struct out *out, size_t begin, size_t begin_length, const char *bound, uint64_t count) {
    out_put(out, out->bytes + begin, begin_length);
    out_text(out, bound);
    out_put(out, "\"} ", 3);
    out_number(out, count);
    out_put(out, "\n", 1);
}

static bool put_histogram(struct out *out, const char *name, const struct labels *labels, const uint64_t *cells, uint64_t sum_ns,
                          uint32_t shown) {
    size_t name_length = strlen(name), line_bytes = name_length + labels->out.length + OUT_NUMBER_BYTES + 32;
    if (!out_reserve(out, (OPSTREAM_CLASSIC_BOUNDS + 4) * line_bytes)) {
        return false;
    }
    /* The beginning stands behind the room that the lines can take at most. */
    struct out begin = {out->bytes, out->length + (OPSTREAM_CLASSIC_BOUNDS + 3) * line_bytes, out->capacity};
    size_t begin_at = begin.length;
    out_put(&begin, name, name_length);
    out_put(&begin, "_bucket{", 8);
    out_put(&begin, labels->out.bytes, labels->out.length);
    out_put(&begin, ",le=\"", 5);
    size_t begin_length = begin.length - begin_at;

    uint64_t count = 0;
    uint32_t cell = 0;
    for (uint32_t i = 0; i < OPSTREAM_CLASSIC_BOUNDS; i++) {
        for (uint32_t end = opstream_classic_cell(i); cell <= end; cell++) {
            count += cells[cell];
        }
        if (shown >> i & 1) {
            put_bucket(out, begin_at, begin_length, bound_texts[i], count);
        }
    }
    for (; cell < OPSTREAM_CELLS; cell++) {
        count += cells[cell];
    }
    put_bucket(out, begin_at, begin_length, "+Inf", count);

    out_put(out, name, name_length);
    out_text(out, "_sum{");
    out_put(out, labels->out.bytes, labels->out.length);
    out_put(out, "} ", 2);
    out_seconds(out, sum_ns);
    out_put(out, "\n", 1);
    out_put(out, name, name_length);
    out_text(out, "_count{");
    out_put(out, labels->out.bytes, labels->out.length);
    out_put(out, "} ", 2);
    out_number(out, count);
    out_put(out, "\n", 1);
    return true;
}

/* ---- Operators ---- */

/* Sums over the operators of a type: in the sorted series these follow each other. */
static bool put_types(struct out *out, struct labels *labels, const opstream_exposition *exposition, uint32_t shown) {
    static const struct family family = {"ascend_op_duration_seconds", "histogram",
                                         "Execution time of every operator run, by operator type."};
    if (exposition->series_count && !put_header(out, &family)) {
        return false;
    }
    for (size_t i = 0; i < exposition->series_count;) {
        const struct merged_type *type = exposition->series[i]->type;
        uint64_t cells[OPSTREAM_CELLS] = {0}, sum_ns = 0;
        for (; i < exposition->series_count && exposition->series[i]->type == type; i++) {
            sum_ns += exposition->series[i]->sum_ns;
            for (uint32_t cell = 0; cell < OPSTREAM_CELLS; cell++) {
                cells[cell] += exposition->series[i]->cells[cell];
            }
        }
        if (!set_type(labels, type) || !set_extra(labels, type->model) || !put_histogram(out, family.name, labels, cells, sum_ns, shown)) {
            return false;
        }
    }
    return true;
}

static void put_executions(struct out *out, const struct merged_series *series) {
    out_number(out, series->count);
}

static void put_sum(struct out *out, const struct merged_series *series) {
    out_seconds(out, series->sum_ns);
}

static void put_longest(struct out *out, const struct merged_series *series) {
    out_seconds(out, series->longest_ns);
}

static const struct {
    struct family family;
    void (*put_value)(struct out *, const struct merged_series *);
} operator_families[] = {
    {{"ascend_op_executions_total", "counter", "Runs of one operator."}, put_executions},
    {{"ascend_op_seconds_total", "counter", "Summed execution time of one operator."}, put_sum},
    {{"ascend_op_max_duration_seconds", "gauge", "Longest run of one operator in the current and the previous minute."}, put_longest},
};

static bool put_operators(struct out *out, struct labels *labels, const opstream_exposition *exposition) {
    for (size_t f = 0; f < sizeof(operator_families) / sizeof(operator_families[0]); f++) {
        const struct family *family = &operator_families[f].family;
        if (exposition->series_count && !put_header(out, family)) {
            return false;
        }
        for (size_t i = 0; i < exposition->series_count; i++) {
            const struct merged_series *series = exposition->series[i];
            if (!set_series(labels, series) || !set_extra(labels, series->type->model) || !put_sample(out, family->name, labels)) {
                return false;
            }
            operator_families[f].put_value(out, series);
            out_put(out, "\n", 1);
        }
    }
    return true;
}

static bool put_operator_histograms(struct out *out, struct labels *labels, const opstream_exposition *exposition, uint32_t shown) {
    static const struct family family = {"ascend_op_name_duration_seconds", "histogram", "Execution time of every run of one operator."};
    if (exposition->series_count && !put_header(out, &family)) {
        return false;
    }
    for (size_t i = 0; i < exposition->series_count; i++) {
        const struct merged_series *series = exposition->series[i];
        if (!set_series(labels, series) || !set_extra(labels, series->type->model) ||
            !put_histogram(out, family.name, labels, series->cells, series->sum_ns, shown)) {
            return false;
        }
    }
    return true;
}

/* ---- Models ---- */

static bool was_subscribed(const struct merged_model *model) {
    return model->subscriptions != 0;
}

static bool has_executions(const struct merged_model *model) {
    return model->executions_created_wall_ns != 0;
}

static bool has_record(const struct merged_model *model) {
    return model->last_execution_wall_ns != 0;
}

static bool has_busy(const struct merged_model *model) {
    return model->busy_created_wall_ns != 0;
}

static void put_one(struct out *out, const struct merged_model *model) {
    (void)model;
    out_put(out, "1", 1);
}

static void put_last_execution(struct out *out, const struct merged_model *model) {
    out_seconds(out, model->last_execution_wall_ns);
}

static void put_busy(struct out *out, const struct merged_model *model) {
    out_seconds(out, model->busy_ns);
}

static void put_gap(struct out *out, const struct merged_model *model) {
    out_seconds(out, model->gap_ns);
}

static void put_late(struct out *out, const struct merged_model *model) {
    out_number(out, model->late_intervals);
}

static void put_subscribed(struct out *out, const struct merged_model *model) {
    out_seconds(out, model->subscribed_ns);
}

/* Without put_value: the histogram. */
static const struct {
    struct family family;
    bool (*shown)(const struct merged_model *);
    void (*put_value)(struct out *, const struct merged_model *);
} model_families[] = {
    {{"ascend_model_info", "gauge", "1 for each model that is or was subscribed."}, was_subscribed, put_one},
    {{"ascend_model_execution_duration_seconds", "histogram", "Execution time of the whole model."}, has_executions, NULL},
    {{"ascend_model_last_execution_timestamp_seconds", "gauge", "Wall clock of the newest record."}, has_record, put_last_execution},
    {{"ascend_model_busy_seconds_total", "counter", "Time in which at least one operator ran; overlapping operators are counted once."},
     has_busy,
     put_busy},
    {{"ascend_model_gap_seconds_total", "counter", "Time inside model executions in which no operator ran."}, has_busy, put_gap},
    {{"ascend_model_late_intervals_total", "counter", "Operators that came too late to count in busy and gap time."}, has_busy, put_late},
    {{"ascend_subscribed_seconds_total", "counter", "Time during which the model was subscribed."}, was_subscribed, put_subscribed},
};

static bool put_models(struct out *out, struct labels *labels, const opstream_exposition *exposition, uint32_t shown) {
    for (size_t f = 0; f < sizeof(model_families) / sizeof(model_families[0]); f++) {
        const struct family *family = &model_families[f].family;
        bool any = false;
        for (size_t i = 0; i < exposition->models_count; i++) {
            const struct merged_model *model = exposition->models[i];
            if (!model_families[f].shown(model)) {
                continue;
            }
            if ((!any && !put_header(out, family)) || !set_model(labels, model) || !set_extra(labels, model)) {
                return false;
            }
            any = true;
            if (!model_families[f].put_value) {
                if (!put_histogram(out, family->name, labels, model->executions, model->executions_sum_ns, shown)) {
                    return false;
                }
                continue;
            }
            if (!put_sample(out, family->name, labels)) {
                return false;
            }
            model_families[f].put_value(out, model);
            out_put(out, "\n", 1);
        }
    }
    return true;
}

/* About how long the text will be. What is too much costs nothing, as it isn't touched; growing would copy. */
static size_t expected_bytes(const opstream_exposition *exposition, const struct opstream_exposition_options *options) {
    size_t histogram = (size_t)__builtin_popcount(options->operator_bounds) + 3, lines = 3 + (options->per_operator ? histogram : 0),
           bytes = 0;
    const struct merged_type *type = NULL;
    for (size_t i = 0; i < exposition->series_count; i++) {
        const struct merged_series *series = exposition->series[i];
        const struct merged_model *model = series->type->model;
        size_t labels = strlen(model->app) + strlen(model->labels) + strlen(model->name) + series->type->type_length;
        bytes += lines * (labels + series->name_length + LINE_BYTES);
        if (series->type != type) {
            bytes += histogram * (labels + LINE_BYTES);
        }
        type = series->type;
    }
    return bytes;
}

int opstream_exposition_text(opstream_exposition *exposition, const struct opstream_exposition_options *options, const char **ret_bytes,
                             size_t *ret_length) {
    int status = merge_sort(exposition);
    if (status) {
        return status;
    }
    struct out out = {exposition->text, 0, exposition->text_capacity};
    struct labels labels = {.bytes_max = options->label_bytes_max};
    bool done = out_reserve(&out, expected_bytes(exposition, options)) && put_types(&out, &labels, exposition, options->operator_bounds) &&
                put_operators(&out, &labels, exposition) &&
                (!options->per_operator || put_operator_histograms(&out, &labels, exposition, options->operator_bounds)) &&
                put_models(&out, &labels, exposition, options->model_bounds);
    free(labels.out.bytes);
    exposition->text = out.bytes;
    exposition->text_capacity = out.capacity;
    if (!done) {
        return OPSTREAM_E_MEMORY;
    }
    *ret_bytes = out.bytes;
    *ret_length = out.length;
    return 0;
}
