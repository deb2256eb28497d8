#include "series.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "histogram.h"
#include "label.h"

#define OTHERS_SHARE 16u                  /* of SERIES' rows and of STRINGS: what is kept for "(other)" rows and their types */
#define RETRY_NS UINT64_C(1000000000)     /* how long to leave the system alone after it had no page */

enum entry_kind { ENTRY_FREE = 0, ENTRY_SERIES, ENTRY_TYPE };

/* Full hashes, so that rows are touched only when they are very likely the right ones. */
struct entry {
    uint64_t hash;
    uint32_t kind;
    uint32_t value;                       /* row of SERIES, or a type's place in STRINGS */
};

/* At most one series and one type per row: with four entries a row the table is never more than half full. */
struct series_table {
    struct segment_writer *writer;
    struct hash_seed seed;
    uint64_t mask;
    uint64_t retry_ns;
    uint32_t last;                        /* row of the last record */
    uint32_t *followers; /* which row came after each one the last time: models run their operators in the same order again and again */
    struct entry entries[];
};

struct text {
    const char *bytes;
    size_t length;
};

void series_table_free(struct series_table *table) {
    if (!table)
        return;
    free(table->followers);
    free(table);
}

int series_table_new(struct segment_writer *writer, struct series_table **ret_table) {
    uint64_t entries = 1;
    while (entries < 4 * writer->series_capacity)
        entries *= 2;
    struct series_table *table = calloc(1, sizeof(*table) + entries * sizeof(table->entries[0]));
    uint32_t *followers = calloc(writer->series_capacity, sizeof(*followers));
    if (!table || !followers) {
        free(table);
        free(followers);
        return OPSTREAM_E_MEMORY;
    }
    table->followers = followers;
    table->writer = writer;
    table->mask = entries - 1;
    int status = hash_seed_new(&table->seed);
    if (status) {
        series_table_free(table);
        return status;
    }
    *ret_table = table;
    return 0;
}

static inline bool string_equals(const struct segment_writer *writer, uint32_t place, struct text text) {
    const char *string = writer->strings + (uint64_t)place * 8;
    return hash_load_4(string) == text.length && !memcmp(string + sizeof(uint32_t), text.bytes, text.length);
}

/* `name` without bytes is "(other)". */
static inline bool row_is(const struct segment_writer *writer, const struct segment_series *row, uint32_t model_row, struct text type,
                          struct text name) {
    if (row->model_row != model_row || !string_equals(writer, row->type, type))
        return false;
    return name.bytes ? row->name != NAME_OTHER && string_equals(writer, row->name, name) : row->name == NAME_OTHER;
}

/* The entry of this series, or the free one that could become it. */
static inline struct entry *find_series(struct series_table *table, uint64_t hash, uint32_t model_row, struct text type, struct text name) {
    for (uint64_t i = hash;; i++) {
        struct entry *entry = &table->entries[i & table->mask];
        if (entry->hash == hash && entry->kind == ENTRY_SERIES &&
            row_is(table->writer, &table->writer->series[entry->value], model_row, type, name))
            return entry;
        if (entry->kind == ENTRY_FREE)
            return entry;
    }
}

static struct entry *find_type(struct series_table *table, uint64_t hash, struct text type) {
    for (uint64_t i = hash;; i++) {
        struct entry *entry = &table->entries[i & table->mask];
        if (entry->kind == ENTRY_FREE ||
            (entry->hash == hash && entry->kind == ENTRY_TYPE && string_equals(table->writer, entry->value, type)))
            return entry;
    }
}

/* Room for a string at the end of STRINGS, up to `limit`: its place, or UINT32_MAX. Pages that can't be had set `retry_ns`. */
static uint32_t place_string(struct series_table *table, struct text text, uint64_t limit, uint64_t now_ns) {
    struct segment_writer *writer = table->writer;
    cell_u64 *used = &writer->base->used[TABLE_STRINGS - 1].rows;
    uint64_t begin = cell_get(used), end = begin + (sizeof(uint32_t) + text.length + 1 + 7) / 8 * 8;
    if (end > limit)
        return UINT32_MAX;
    if (!segment_have_strings(writer, end)) {
        table->retry_ns = now_ns + RETRY_NS;
        return UINT32_MAX;
    }
    uint32_t length = (uint32_t)text.length;
    memcpy(writer->strings + begin, &length, sizeof(length));
    memcpy(writer->strings + begin + sizeof(length), text.bytes, length);
    atomic_store_explicit(used, end, memory_order_release);
    return (uint32_t)(begin / 8);
}

/* The row for a series at its first sight, or NULL. */
static struct segment_series *add_series(struct series_table *table, uint64_t hash, uint32_t model_row, struct text type, struct text name,
                                         uint64_t now_ns) {
    struct segment_writer *writer = table->writer;
    cell_u64 *used = &writer->base->used[TABLE_SERIES - 1].rows;
    uint64_t row = cell_get(used), rows_limit = writer->series_capacity, strings_limit = writer->strings_bytes;
    if (now_ns < table->retry_ns)
        return NULL;
    if (name.bytes) {
        rows_limit -= rows_limit / OTHERS_SHARE;
        strings_limit -= strings_limit / OTHERS_SHARE;
    }
    if (row >= rows_limit)
        return NULL;
    if (!segment_have_series(writer, row)) {
        table->retry_ns = now_ns + RETRY_NS;
        return NULL;
    }
    uint64_t type_hash = hash_text(table->seed, 0, type.bytes, type.length);
    struct entry *type_entry = find_type(table, type_hash, type);
    if (type_entry->kind == ENTRY_FREE) {
        uint32_t place = place_string(table, type, strings_limit, now_ns);
        if (place == UINT32_MAX)
            return NULL;
        *type_entry = (struct entry){type_hash, ENTRY_TYPE, place};
    }
    uint32_t name_place = name.bytes ? place_string(table, name, strings_limit, now_ns) : NAME_OTHER;
    if (name.bytes && name_place == UINT32_MAX)
        return NULL;
    struct segment_series *series = &writer->series[row];
    series->hash = hash;
    series->model_row = model_row;
    series->type = type_entry->value;
    series->name = name_place;
    /* The type may have taken the free entry that was found before. */
    *find_series(table, hash, model_row, type, name) = (struct entry){hash, ENTRY_SERIES, (uint32_t)row};
    atomic_store_explicit(used, row + 1, memory_order_release);
    return series;
}

static inline void record(struct segment_series *row, uint64_t duration_ns, uint64_t wall_ns, uint64_t now_ns) {
    uint64_t window = now_ns / WINDOW_NS, last = cell_get(&row->window);
    cell_u64 *longest = &row->longest_ns[window & 1];
    if (window != last) {
        if (window != last + 1)
            cell_set(&row->longest_ns[~window & 1], 0);
        cell_set(longest, duration_ns);
        cell_set(&row->window, window);
    } else if (duration_ns > cell_get(longest)) {
        cell_set(longest, duration_ns);
    }
    histogram_add(&row->duration, duration_ns, wall_ns);
}

/* Out of line: seldom, and keeps two buffers off the usual way's stack. */
static __attribute__((noinline)) bool record_cut(struct series_table *table, uint32_t model_row, struct text type, struct text name,
                                                 uint64_t duration_ns, uint64_t wall_ns, uint64_t now_ns) {
    char type_bytes[STRING_BYTES_MAX], name_bytes[STRING_BYTES_MAX];
    size_t type_length = label_cut(type.bytes, type.length, sizeof(type_bytes), type_bytes);
    size_t name_length = label_cut(name.bytes, name.length, sizeof(name_bytes), name_bytes);
    return series_record(table, model_row, type_bytes, type_length, name_bytes, name_length, duration_ns, wall_ns, now_ns);
}

/* A series that has no row yet: gives it one, or else its type's "(other)", or else the model's. Whether it has its own. */
static __attribute__((noinline)) bool record_new(struct series_table *table, uint64_t hash, uint64_t other_hash, uint32_t model_row,
                                                 struct text type, struct text name, uint64_t duration_ns, uint64_t wall_ns,
                                                 uint64_t now_ns) {
    const struct text other = {NULL, 0};
    struct segment_writer *writer = table->writer;
    struct segment_series *row = add_series(table, hash, model_row, type, name, now_ns);
    bool own = row != NULL;
    if (!own) {
        struct entry *entry = find_series(table, other_hash, model_row, type, other);
        row = entry->kind == ENTRY_SERIES ? &writer->series[entry->value] : add_series(table, other_hash, model_row, type, other, now_ns);
    }
    record(row ? row : &writer->others[model_row], duration_ns, wall_ns, now_ns);
    return own;
}

bool series_record(struct series_table *table, uint32_t model_row, const char *type_bytes, size_t type_length, const char *name_bytes,
                   size_t name_length, uint64_t duration_ns, uint64_t wall_ns, uint64_t now_ns) {
    const struct text type = {type_bytes, type_length}, name = {name_bytes, name_length};
    if (type_length > STRING_BYTES_MAX || name_length > STRING_BYTES_MAX)
        return record_cut(table, model_row, type, name, duration_ns, wall_ns, now_ns);

    /* A guess that is right saves the hash; row 0 is what follows nothing yet. */
    uint32_t row = table->followers[table->last];
    if (cell_get(&table->writer->base->used[TABLE_SERIES - 1].rows) == 0 ||
        !row_is(table->writer, &table->writer->series[row], model_row, type, name)) {
        uint64_t type_and_model = hash_text(table->seed, model_row, type_bytes, type_length);
        uint64_t hash = hash_text(table->seed, type_and_model, name_bytes, name_length);
        struct entry *entry = find_series(table, hash, model_row, type, name);
        if (entry->kind == ENTRY_FREE)
            return record_new(table, hash, ~type_and_model, model_row, type, name, duration_ns, wall_ns, now_ns);
        row = entry->value;
        table->followers[table->last] = row;
    }
    table->last = row;
    record(&table->writer->series[row], duration_ns, wall_ns, now_ns);
    return true;
}
