/* The tables that the vendor's profiler writes. Their columns differ between versions, so they are found by name. */
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "failure.h"
#include "workload.h"

struct field {
    const char *at; /* without the quotes around it */
    size_t length;
    bool is_quoted;
};

struct row {
    const char *at;
    struct field *fields;
    size_t count;
    size_t capacity;
};

enum { NAME, TYPE, START, DURATION, COLUMNS };

/* Two dialects: kernel_details and op_summary. */
static const char *const column_names[COLUMNS][2] = {
    [NAME] = {"Name", "Op Name"},
    [TYPE] = {"Type", "OP Type"},
    [START] = {"Start Time(us)", "Task Start Time(us)"},
    [DURATION] = {"Duration(us)", "Task Duration(us)"},
};

struct column {
    const char *name;
    size_t index;
};

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* Newer tables have a tab after numbers. */
static void trim(struct field *field) {
    while (field->length > 0 && is_blank(field->at[field->length - 1])) {
        field->length--;
    }
    while (field->length > 0 && is_blank(field->at[0])) {
        field->at++;
        field->length--;
    }
}

/* Reads a field and moves `*at` to what ends it: a comma, a line's end or the text's. */
static aclError read_field(const struct source *source, const char **at, struct field *ret_field) {
    const char *c = *at;
    struct field field = {.at = c, .is_quoted = c < source->end && *c == '"'};
    if (field.is_quoted) {
        field.at = ++c;
        while (c < source->end && (*c != '"' || (c + 1 < source->end && c[1] == '"'))) {
            c += *c == '"' ? 2 : 1;
        }
        if (c == source->end) {
            return source_fail(source, *at, "a quote that is never closed");
        }
        field.length = (size_t)(c - field.at);
        for (c++; c < source->end && is_blank(*c); c++) {
        }
        if (c < source->end && *c != ',' && *c != '\n') {
            return source_fail(source, c, "text after a closing quote");
        }
    } else {
        while (c < source->end && *c != ',' && *c != '\n') {
            c++;
        }
        field.length = (size_t)(c - field.at);
    }
    trim(&field);
    *at = c;
    *ret_field = field;
    return ACL_SUCCESS;
}

/* Reads a row and moves `*at` to the next one. */
static aclError read_row(const struct source *source, const char **at, struct row *row) {
    row->at = *at;
    for (row->count = 0;;) {
        if (row->count == row->capacity) {
            size_t capacity = row->capacity ? 2 * row->capacity : 64;
            struct field *fields = realloc(row->fields, capacity * sizeof *fields);
            if (!fields) {
                return fail(ACL_ERROR_BAD_ALLOC, "no memory for a row");
            }
            row->fields = fields;
            row->capacity = capacity;
        }
        aclError error = read_field(source, at, &row->fields[row->count]);
        if (error) {
            return error;
        }
        row->count++;
        if (*at == source->end) {
            return ACL_SUCCESS;
        }
        if (*(*at)++ == '\n') {
            return ACL_SUCCESS;
        }
    }
}

static bool is_empty(const struct row *row) {
    return row->count == 1 && row->fields[0].length == 0 && !row->fields[0].is_quoted;
}

static aclError find_columns(const struct source *source, const struct row *header, struct column columns[COLUMNS]) {
    for (size_t c = 0; c < COLUMNS; c++) {
        columns[c] = (struct column){0};
        for (size_t i = 0; i < header->count && !columns[c].name; i++) {
            for (size_t dialect = 0; dialect < 2; dialect++) {
                const char *name = column_names[c][dialect];
                if (header->fields[i].length == strlen(name) && memcmp(header->fields[i].at, name, strlen(name)) == 0) {
                    columns[c] = (struct column){.name = name, .index = i};
                }
            }
        }
        if (!columns[c].name) {
            return source_fail(source, header->at, "no column \"%s\" or \"%s\", and no first line \"opstream-workload 1\" either",
                               column_names[c][0], column_names[c][1]);
        }
    }
    return ACL_SUCCESS;
}

static aclError read_time(const struct source *source, struct field field, const char *column, uint64_t *ret_ns) {
    int status = decimal_parse(field.at, field.length, 3, ret_ns);
    return status ? source_fail_field(source, field.at, field.length, column, decimal_complaint(status)) : ACL_SUCCESS;
}

/* A copy of the field's text; in a quoted one, two quotes stand for one. */
static aclError read_text(const struct source *source, struct field field, const char *column, char **ret_text) {
    if (field.length == 0) {
        return source_fail(source, field.at, "%s: is empty", column);
    }
    char *text = malloc(field.length + 1);
    if (!text) {
        return fail(ACL_ERROR_BAD_ALLOC, "no memory for an operator");
    }
    size_t length = 0;
    for (size_t i = 0; i < field.length; i++) {
        text[length++] = field.at[i];
        i += field.is_quoted && field.at[i] == '"';
    }
    text[length] = '\0';
    *ret_text = text;
    return ACL_SUCCESS;
}

/* Rows may end early: real tables have some that lack their last columns. */
static aclError read_operator(const struct source *source, const struct row *row, const struct column columns[COLUMNS],
                              struct workload *workload) {
    uint64_t start_ns = 0;
    uint64_t duration_ns = 0;
    char *name = NULL;
    char *type = NULL;
    for (size_t c = 0; c < COLUMNS; c++) {
        if (columns[c].index >= row->count) {
            return source_fail(source, row->at, "%s: is missing from this row of %zu fields", columns[c].name, row->count);
        }
    }
    aclError error = read_time(source, row->fields[columns[START].index], columns[START].name, &start_ns);
    error = error ? error : read_time(source, row->fields[columns[DURATION].index], columns[DURATION].name, &duration_ns);
    error = error ? error : read_text(source, row->fields[columns[TYPE].index], columns[TYPE].name, &type);
    error = error ? error : read_text(source, row->fields[columns[NAME].index], columns[NAME].name, &name);
    if (error) {
        free(type);
        return error;
    }
    return workload_add_operator(workload, name, type, start_ns, duration_ns);
}

aclError workload_parse_csv(const struct source *source, struct workload *workload) {
    struct row row = {0};
    struct column columns[COLUMNS];
    const char *at = source->text;
    aclError error = read_row(source, &at, &row);
    error = error ? error : find_columns(source, &row, columns);
    size_t width = row.count;
    while (!error && at < source->end) {
        error = read_row(source, &at, &row);
        if (error || is_empty(&row)) {
            continue;
        }
        error = row.count <= width ? read_operator(source, &row, columns, workload)
                                   : source_fail(source, row.at, "%zu fields, but the header has %zu", row.count, width);
    }
    free(row.fields);
    return error;
}
