#include "merge.h"

#include <stdbool.h>
#include <stdlib.h>

#include "label.h"

#define TABLE_CAPACITY_MIN 256u
#define REPLACEMENT "\xef\xbf\xbd"

int opstream_exposition_new(opstream_exposition **ret_exposition) {
    struct hash_seed seed;
    int status = hash_seed_new(&seed);
    if (status) {
        return status;
    }
    opstream_exposition *exposition = calloc(1, sizeof(*exposition));
    if (!exposition) {
        return OPSTREAM_E_MEMORY;
    }
    exposition->seed = seed;
    *ret_exposition = exposition;
    return 0;
}

void opstream_exposition_free(opstream_exposition *exposition) {
    if (!exposition) {
        return;
    }
    arena_free(&exposition->arena);
    free(exposition->model_table.entries);
    free(exposition->type_table.entries);
    free(exposition->series_table.entries);
    free(exposition->models);
    free(exposition->series);
    free(exposition->text);
    free(exposition);
}

/* Room for one more entry. */
static bool table_has_room(struct merge_table *table) {
    if (2 * (table->count + 1) <= table->capacity) {
        return true;
    }
    struct merge_table larger = {.capacity = table->capacity ? 2 * table->capacity : TABLE_CAPACITY_MIN, .count = table->count};
    larger.entries = calloc(larger.capacity, sizeof(larger.entries[0]));
    if (!larger.entries) {
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (!table->entries[i].found) {
            continue;
        }
        size_t j = table->entries[i].hash;
        while (larger.entries[j & (larger.capacity - 1)].found) {
            j++;
        }
        larger.entries[j & (larger.capacity - 1)] = table->entries[i];
    }
    free(table->entries);
    *table = larger;
    return true;
}

/* ---- Keys ---- */

struct key {
    const char *text;
    size_t length;
};

/* The text, or its copy in `buffer` (three times its length) in which each byte that is part of no character has become U+FFFD. */
static struct key valid_text(const char *text, size_t length, char *buffer) {
    size_t i = 0, written = 0, step;
    while (i < length && (step = label_character(text + i, length - i))) {
        i += step;
    }
    if (i == length) {
        return (struct key){text, length};
    }
    memcpy(buffer, text, i);
    for (written = i; i < length; i += step) {
        step = label_character(text + i, length - i);
        memcpy(buffer + written, step ? text + i : REPLACEMENT, step ? step : 3);
        written += step ? step : 3;
        step += !step;
    }
    return (struct key){buffer, written};
}

static bool equals(struct key key, const char *text) {
    return !strncmp(key.text, text, key.length) && !text[key.length];
}

/* Finds or makes the model; NULL: no memory. A new one has nothing to show. */
static struct merged_model *model_of(opstream_exposition *exposition, struct key app, struct key labels, uint32_t device, struct key name) {
    struct merge_table *table = &exposition->model_table;
    if (!table_has_room(table)) {
        return NULL;
    }
    uint64_t hash = hash_text(exposition->seed, device, name.text, name.length);
    hash = hash_text(exposition->seed, hash_text(exposition->seed, hash, app.text, app.length), labels.text, labels.length);
    struct merge_entry *entry;
    for (size_t i = hash; (entry = &table->entries[i & (table->capacity - 1)])->found; i++) {
        struct merged_model *model = entry->found;
        if (entry->hash == hash && model->device == device && equals(name, model->name) && equals(app, model->app) &&
            equals(labels, model->labels)) {
            return model;
        }
    }
    struct merged_model *model = arena_take(&exposition->arena, sizeof(*model));
    if (!model) {
        return NULL;
    }
    *model = (struct merged_model){.device = device};
    model->app = arena_text(&exposition->arena, app.text, app.length);
    model->labels = arena_text(&exposition->arena, labels.text, labels.length);
    model->name = arena_text(&exposition->arena, name.text, name.length);
    if (!model->app || !model->labels || !model->name) {
        return NULL;
    }
    *entry = (struct merge_entry){hash, model};
    table->count++;
    return model;
}

static struct merged_type *type_of(opstream_exposition *exposition, struct merged_model *model, struct key text) {
    struct merge_table *table = &exposition->type_table;
    if (!table_has_room(table)) {
        return NULL;
    }
    uint64_t hash = hash_text(exposition->seed, (uintptr_t)model, text.text, text.length);
    struct merge_entry *entry;
    for (size_t i = hash; (entry = &table->entries[i & (table->capacity - 1)])->found; i++) {
        struct merged_type *type = entry->found;
        if (entry->hash == hash && type->model == model && type->type_length == text.length &&
            !memcmp(type->type, text.text, text.length)) {
            return type;
        }
    }
    struct merged_type *type = arena_take(&exposition->arena, sizeof(*type));
    if (!type) {
        return NULL;
    }
    *type = (struct merged_type){
        .model = model, .type = arena_text(&exposition->arena, text.text, text.length), .type_length = (uint32_t)text.length};
    if (!type->type) {
        return NULL;
    }
    *entry = (struct merge_entry){hash, type};
    table->count++;
    return type;
}

static struct merged_series *series_of(opstream_exposition *exposition, struct merged_type *type, struct key name) {
    struct merge_table *table = &exposition->series_table;
    if (!type || !table_has_room(table)) {
        return NULL;
    }
    uint64_t hash = hash_text(exposition->seed, (uintptr_t)type, name.text, name.length);
    struct merge_entry *entry;
    for (size_t i = hash; (entry = &table->entries[i & (table->capacity - 1)])->found; i++) {
        struct merged_series *series = entry->found;
        if (entry->hash == hash && series->type == type && series->name_length == name.length &&
            !memcmp(series->name, name.text, name.length)) {
            return series;
        }
    }
    struct merged_series *series = arena_take(&exposition->arena, sizeof(*series));
    if (!series) {
        return NULL;
    }
    *series = (struct merged_series){
        .type = type, .name = arena_text(&exposition->arena, name.text, name.length), .name_length = (uint32_t)name.length};
    if (!series->name) {
        return NULL;
    }
    *entry = (struct merge_entry){hash, series};
    table->count++;
    return series;
}

/* ---- Adding ---- */

static uint64_t earliest(uint64_t a, uint64_t b) {
    return !a || (b && b < a) ? b : a;
}

static uint64_t latest(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void add_model(struct merged_model *to, const struct view_model *from, uint64_t alive_until_ns) {
    uint64_t subscribed_ns = from->subscribed;
    if (subscribed_ns & SUBSCRIBED_RUNNING) {
        uint64_t since = subscribed_ns & ~SUBSCRIBED_RUNNING;
        subscribed_ns = alive_until_ns > since ? alive_until_ns - since : 0;
    }
    to->subscriptions += from->subscriptions;
    to->subscribed_ns += subscribed_ns;
    to->last_execution_wall_ns = latest(to->last_execution_wall_ns, from->last_execution_wall_ns);
    to->busy_ns += from->busy_ns;
    to->gap_ns += from->gap_ns;
    to->late_intervals += from->late_intervals;
    to->busy_created_wall_ns = earliest(to->busy_created_wall_ns, from->busy_created_wall_ns);
    to->executions_created_wall_ns = earliest(to->executions_created_wall_ns, from->executions_created_wall_ns);
    to->executions_sum_ns += from->executions_sum_ns;
    for (uint32_t cell = 0; cell < OPSTREAM_CELLS; cell++) {
        to->executions[cell] += from->executions[cell];
    }
}

static void add_series(struct merged_series *to, const struct view_series *from) {
    if (!from->created_wall_ns) {
        return;
    }
    to->type->recorded = 1;
    to->created_wall_ns = earliest(to->created_wall_ns, from->created_wall_ns);
    to->sum_ns += from->sum_ns;
    to->longest_ns = latest(to->longest_ns, from->longest_ns);
    uint64_t count = 0;
    for (uint32_t cell = 0; cell < OPSTREAM_CELLS; cell++) {
        to->cells[cell] += from->cells[cell];
        count += from->cells[cell];
    }
    to->count += count;
}

/* Where each row of a view goes to. */
struct targets {
    struct merged_model *models[MODELS_CAPACITY];
    struct merged_series *others[MODELS_CAPACITY];
    struct merged_series **series;
};

static int find_targets(opstream_exposition *exposition, opstream_view *view, struct key app, struct key labels, uint32_t models,
                        uint32_t rows, struct targets *targets) {
    static const struct key other = {"(other)", sizeof("(other)") - 1};
    char type_buffer[3 * STRING_BYTES_MAX], name_buffer[3 * STRING_BYTES_MAX];
    struct view_model model;
    for (uint32_t row = 0; row < models; row++) {
        view_model(view, row, &model);
        struct key name = valid_text(model.name, strlen(model.name), name_buffer);
        targets->models[row] = model_of(exposition, app, labels, model.device, name);
        targets->others[row] = targets->models[row] ? series_of(exposition, type_of(exposition, targets->models[row], other), other) : NULL;
        if (!targets->others[row]) {
            return OPSTREAM_E_MEMORY;
        }
    }
    for (uint32_t row = 0; row < rows; row++) {
        const struct view_identity *identity = view_identity(view, row);
        struct key type = valid_text(identity->type, identity->type_length, type_buffer);
        struct key name = valid_text(identity->name, identity->name_length, name_buffer);
        targets->series[row] = series_of(exposition, type_of(exposition, targets->models[identity->model_row], type), name);
        if (!targets->series[row]) {
            return OPSTREAM_E_MEMORY;
        }
    }
    return 0;
}

/* First everything that can fail, which leaves at most series without a record behind, and those aren't shown; then the numbers. */
int opstream_exposition_add(opstream_exposition *exposition, opstream_view *view, const char *app, const char *labels, uint64_t now_ns,
                            uint64_t alive_until_ns) {
    uint32_t models, rows;
    int status = view_rows(view, &models, &rows);
    if (status) {
        return status;
    }
    struct targets targets = {.series = malloc((rows + 1) * sizeof(targets.series[0]))};
    if (!targets.series) {
        return OPSTREAM_E_MEMORY;
    }
    exposition->sorted = 0;
    status = find_targets(exposition, view, (struct key){app, strlen(app)}, (struct key){labels, strlen(labels)}, models, rows, &targets);
    if (!status) {
        struct view_model model;
        struct view_series series;
        for (uint32_t row = 0; row < models; row++) {
            view_model(view, row, &model);
            add_model(targets.models[row], &model, alive_until_ns);
            view_other(view, row, now_ns, &series);
            add_series(targets.others[row], &series);
        }
        for (uint32_t row = 0; row < rows; row++) {
            view_series(view, row, now_ns, &series);
            add_series(targets.series[row], &series);
        }
    }
    free(targets.series);
    return status;
}

/* ---- Order ---- */

static int compare_models(const void *left, const void *right) {
    const struct merged_model *a = *(struct merged_model *const *)left, *b = *(struct merged_model *const *)right;
    int order = strcmp(a->app, b->app);
    if (!order) {
        order = strcmp(a->labels, b->labels);
    }
    if (!order) {
        order = (a->device > b->device) - (a->device < b->device);
    }
    return order ? order : strcmp(a->name, b->name);
}

static int compare_types(const void *left, const void *right) {
    const struct merged_type *a = *(struct merged_type *const *)left, *b = *(struct merged_type *const *)right;
    return a->model == b->model ? strcmp(a->type, b->type) : a->model->order < b->model->order ? -1 : 1;
}

static int compare_series(const void *left, const void *right) {
    const struct merged_series *a = *(struct merged_series *const *)left, *b = *(struct merged_series *const *)right;
    return a->type == b->type ? strcmp(a->name, b->name) : a->type->order < b->type->order ? -1 : 1;
}

/* All that a table has found, in no order; NULL: no memory. */
static void *all_of(const struct merge_table *table) {
    void **all = malloc((table->count + 1) * sizeof(*all));
    size_t count = 0;
    for (size_t i = 0; all && i < table->capacity; i++) {
        if (table->entries[i].found) {
            all[count++] = table->entries[i].found;
        }
    }
    return all;
}

/* Places of models and types first: then series are compared by a number and their names. */
int merge_sort(opstream_exposition *exposition) {
    if (exposition->sorted) {
        return 0;
    }
    struct merged_model **models = all_of(&exposition->model_table);
    struct merged_type **types = all_of(&exposition->type_table);
    struct merged_series **series = all_of(&exposition->series_table);
    if (!models || !types || !series) {
        free(models);
        free(types);
        free(series);
        return OPSTREAM_E_MEMORY;
    }
    size_t models_count = exposition->model_table.count, types_count = exposition->type_table.count, series_count = 0;
    qsort(models, models_count, sizeof(*models), compare_models);
    for (size_t i = 0; i < models_count; i++) {
        models[i]->order = (uint32_t)i;
    }
    qsort(types, types_count, sizeof(*types), compare_types);
    for (size_t i = 0; i < types_count; i++) {
        types[i]->order = (uint32_t)i;
    }
    for (size_t i = 0; i < exposition->series_table.count; i++) {
        if (series[i]->created_wall_ns) {
            series[series_count++] = series[i];
        }
    }
    qsort(series, series_count, sizeof(*series), compare_series);
    free(types);
    free(exposition->models);
    free(exposition->series);
    exposition->models = models;
    exposition->series = series;
    exposition->models_count = models_count;
    exposition->series_count = series_count;
    exposition->sorted = 1;
    return 0;
}

/* Over the tables: counting must not need memory. */
size_t opstream_exposition_series(const opstream_exposition *exposition) {
    const struct merge_table *models = &exposition->model_table, *types = &exposition->type_table, *series = &exposition->series_table;
    size_t count = 0;
    for (size_t i = 0; i < series->capacity; i++) {
        const struct merged_series *found = series->entries[i].found;
        count += found && found->created_wall_ns ? 3 : 0; /* executions, seconds, longest */
    }
    for (size_t i = 0; i < types->capacity; i++) {
        const struct merged_type *found = types->entries[i].found;
        count += found && found->recorded ? 1 : 0;
    }
    for (size_t i = 0; i < models->capacity; i++) {
        const struct merged_model *found = models->entries[i].found;
        if (!found) {
            continue;
        }
        count += found->subscriptions ? 2 : 0; /* info, subscribed time */
        count += found->last_execution_wall_ns ? 1 : 0;
        count += found->busy_created_wall_ns ? 3 : 0; /* busy, gap, late */
        count += found->executions_created_wall_ns ? 1 : 0;
    }
    return count;
}
