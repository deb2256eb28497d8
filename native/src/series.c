#include "series.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "histogram.h"
#include "label.h"

#define OTHERS_SHARE 16u              /* of SERIES' rows and of STRINGS: what is kept for "(other)" rows and their types */
#define RETRY_NS UINT64_C(1000000000) /* how long to leave the system alone after it had no page */

enum entry_kind { ENTRY_FREE = 0, ENTRY_SERIES, ENTRY_TYPE };

/* Full hashes, so that rows are touched only when they are very likely the right ones. */
struct entry {
    uint64_t hash;
    uint32_t kind;
    uint32_t value; /* row of SERIES, or a type's place in STRINGS */
};

/* A series of its own row, in private memory: models run their operators in the same order again and again. */
struct known_series {
    struct text_guess texts;
    struct segment_series *row;
    struct known_series *follower; /* which one came after it the last time, or nothing */
    uint32_t model_row;
};

/* At most one series and one type per row: with four entries a row the table is never more than half full. */
struct series_table {
    struct segment_writer *writer;
    struct hash_seed seed;
    uint64_t mask;
    uint64_t retry_ns;
    struct known_series *last;     /* the last record's */
    struct known_series *expected; /* what came after that one the last time */
    struct text_guess guess;       /* its texts */
    struct known_series nothing;   /* no record is of it */
    struct known_series *known;    /* by row */
    struct entry entries[];
};

static const struct kept_text no_text = {.length = 0, .bytes = "\0\0\0"};

struct text {
    const char *bytes;
    size_t length;
};

/* What the next record will be compared with, and counted in, comes nearer while it is fetched. */
static inline void expect_after(struct series_table *table, struct known_series *last) {
    struct known_series *expected = last->follower;
    __builtin_prefetch(expected->texts.name);
    __builtin_prefetch(expected->row);
    table->guess = expected->texts;
    table->expected = expected;
    table->last = last;
}

void series_table_free(struct series_table *table) {
    if (!table) {
        return;
    }
    free(table->known);
    free(table);
}

int series_table_new(struct segment_writer *writer, struct series_table **ret_table) {
    uint64_t entries = 1;
    while (entries < 4 * writer->series_capacity) {
        entries *= 2;
    }
    struct series_table *table = calloc(1, sizeof(*table) + entries * sizeof(table->entries[0]));
    struct known_series *known = calloc(writer->series_capacity, sizeof(*known));
    if (!table || !known) {
        free(table);
        free(known);
        return OPSTREAM_E_MEMORY;
    }
    table->known = known;
    table->nothing = (struct known_series){.texts = {&no_text, &no_text}, .follower = &table->nothing, .model_row = UINT32_MAX};
    expect_after(table, &table->nothing);
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

static inline const struct kept_text *text_at(const struct segment_writer *writer, uint32_t place) {
    return (const struct kept_text *)(writer->strings + (uint64_t)place * 8);
}

static bool text_equals(const struct segment_writer *writer, uint32_t place, struct text text) {
    const struct kept_text *kept = text_at(writer, place);
    return kept->length == text.length && !memcmp(kept->bytes, text.bytes, text.length);
}

/* `name` without bytes is "(other)". */
static bool row_is(const struct segment_writer *writer, const struct segment_series *row, uint32_t model_row, struct text type,
                   struct text name) {
    if (row->model_row != model_row || !text_equals(writer, row->type, type)) {
        return false;
    }
    return name.bytes ? row->name != NAME_OTHER && text_equals(writer, row->name, name) : row->name == NAME_OTHER;
}

/* The entry of this series, or the free one that could become it. */
static struct entry *find_series(struct series_table *table, uint64_t hash, uint32_t model_row, struct text type, struct text name) {
    for (uint64_t i = hash;; i++) {
        struct entry *entry = &table->entries[i & table->mask];
        if (entry->hash == hash && entry->kind == ENTRY_SERIES &&
            row_is(table->writer, &table->writer->series[entry->value], model_row, type, name)) {
            return entry;
        }
        if (entry->kind == ENTRY_FREE) {
            return entry;
        }
    }
}

static struct entry *find_type(struct series_table *table, uint64_t hash, struct text type) {
    for (uint64_t i = hash;; i++) {
        struct entry *entry = &table->entries[i & table->mask];
        if (entry->kind == ENTRY_FREE ||
            (entry->hash == hash && entry->kind == ENTRY_TYPE && text_equals(table->writer, entry->value, type))) {
            return entry;
        }
    }
}

/* Room for a string at the end of STRINGS, up to `limit`: its place, or UINT32_MAX. Pages that can't be had set `retry_ns`. */
static uint32_t place_string(struct series_table *table, struct text text, uint64_t limit, uint64_t now_ns) {
    struct segment_writer *writer = table->writer;
    cell_u64 *used = &writer->base->used[TABLE_STRINGS - 1].rows;
    uint64_t begin = cell_get(used), end = begin + (sizeof(uint32_t) + text.length + 1 + 7) / 8 * 8;
    if (end > limit) {
        return UINT32_MAX;
    }
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
    if (now_ns < table->retry_ns) {
        return NULL;
    }
    if (name.bytes) {
        rows_limit -= rows_limit / OTHERS_SHARE;
        strings_limit -= strings_limit / OTHERS_SHARE;
    }
    if (row >= rows_limit) {
        return NULL;
    }
    if (!segment_have_series(writer, row)) {
        table->retry_ns = now_ns + RETRY_NS;
        return NULL;
    }
    uint64_t type_hash = hash_text(table->seed, 0, type.bytes, type.length);
    struct entry *type_entry = find_type(table, type_hash, type);
    if (type_entry->kind == ENTRY_FREE) {
        uint32_t place = place_string(table, type, strings_limit, now_ns);
        if (place == UINT32_MAX) {
            return NULL;
        }
        *type_entry = (struct entry){type_hash, ENTRY_TYPE, place};
    }
    uint32_t name_place = name.bytes ? place_string(table, name, strings_limit, now_ns) : NAME_OTHER;
    if (name.bytes && name_place == UINT32_MAX) {
        return NULL;
    }
    struct segment_series *series = &writer->series[row];
    series->hash = hash;
    series->model_row = model_row;
    series->type = type_entry->value;
    series->name = name_place;
    /* The type may have taken the free entry that was found before. */
    *find_series(table, hash, model_row, type, name) = (struct entry){hash, ENTRY_SERIES, (uint32_t)row};
    atomic_store_explicit(used, row + 1, memory_order_release);
    table->known[row] = (struct known_series){
        .texts = {text_at(writer, series->type), name.bytes ? text_at(writer, series->name) : &no_text},
        .row = series,
        .follower = &table->nothing,
        .model_row = model_row,
    };
    return series;
}

static inline __attribute__((always_inline)) void record(struct segment_series *row, uint64_t duration_ns, const struct moment *now) {
    uint64_t window = now->window, last = cell_get(&row->window);
    cell_u64 *longest = &row->longest_ns[window & 1];
    if (window != last) {
        if (window != last + 1) {
            cell_set(&row->longest_ns[~window & 1], 0);
        }
        cell_set(longest, duration_ns);
        cell_set(&row->window, window);
    } else if (duration_ns > cell_get(longest)) {
        cell_set(longest, duration_ns);
    }
    histogram_add(&row->duration, duration_ns, now->wall_ns);
}

/* A series that has no row yet: gives it one, or else its type's "(other)", or else the model's. Whether it has its own. */
static __attribute__((noinline)) bool record_new(struct series_table *table, uint64_t hash, uint64_t other_hash, uint32_t model_row,
                                                 const struct operator_run *run, uint64_t duration_ns, const struct moment *now) {
    const struct text type = {run->type, run->type_length}, name = {run->name, run->name_length}, other = {NULL, 0};
    struct segment_writer *writer = table->writer;
    struct segment_series *row = add_series(table, hash, model_row, type, name, now->monotonic_ns);
    bool own = row != NULL;
    if (!own) {
        struct entry *entry = find_series(table, other_hash, model_row, type, other);
        row = entry->kind == ENTRY_SERIES ? &writer->series[entry->value]
                                          : add_series(table, other_hash, model_row, type, other, now->monotonic_ns);
    }
    record(row ? row : &writer->others[model_row], duration_ns, now);
    return own;
}

static bool record_unexpected(struct series_table *table, uint32_t model_row, const struct operator_run *run, uint64_t duration_ns,
                              const struct moment *now);

/* Out of line: seldom, and keeps two buffers off the usual way's stack. */
static __attribute__((noinline)) bool record_cut(struct series_table *table, uint32_t model_row, const struct operator_run *run,
                                                 uint64_t duration_ns, const struct moment *now) {
    char type[STRING_BYTES_MAX], name[STRING_BYTES_MAX];
    struct operator_run cut = {
        .type = type,
        .name = name,
        .type_length = label_cut(run->type, run->type_length, sizeof(type), type),
        .name_length = label_cut(run->name, run->name_length, sizeof(name), name),
    };
    return record_unexpected(table, model_row, &cut, duration_ns, now);
}

/* Of another operator than followed the last time. */
static __attribute__((noinline)) bool record_unexpected(struct series_table *table, uint32_t model_row, const struct operator_run *run,
                                                        uint64_t duration_ns, const struct moment *now) {
    if (run->type_length > STRING_BYTES_MAX || run->name_length > STRING_BYTES_MAX) {
        return record_cut(table, model_row, run, duration_ns, now);
    }
    const struct text type = {run->type, run->type_length}, name = {run->name, run->name_length};
    uint64_t type_and_model = hash_text(table->seed, model_row, type.bytes, type.length);
    uint64_t hash = hash_text(table->seed, type_and_model, name.bytes, name.length);
    struct entry *entry = find_series(table, hash, model_row, type, name);
    if (entry->kind == ENTRY_FREE) {
        return record_new(table, hash, ~type_and_model, model_row, run, duration_ns, now);
    }
    table->last->follower = &table->known[entry->value];
    record(table->last->follower->row, duration_ns, now);
    expect_after(table, table->last->follower);
    return true;
}

const struct text_guess *series_guess(const struct series_table *table) {
    return &table->guess;
}

/* A guess that is right saves the hash. */
bool series_record(struct series_table *table, uint32_t model_row, const struct operator_run *run, uint64_t duration_ns,
                   const struct moment *now) {
    struct known_series *expected = table->expected;
    if (run->name != expected->texts.name->bytes || run->type != expected->texts.type->bytes || model_row != expected->model_row) {
        return record_unexpected(table, model_row, run, duration_ns, now);
    }
    record(expected->row, duration_ns, now);
    expect_after(table, expected);
    return true;
}
