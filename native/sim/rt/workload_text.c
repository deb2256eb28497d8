#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "failure.h"
#include "workload.h"

#define MAGIC "opstream-workload"
#define FIRST_LINE MAGIC " 1"
#define MOST_FIELDS 5

struct field {
    const char *at;
    size_t length;
};

struct line {
    const struct source *source;
    struct field fields[MOST_FIELDS];
    size_t count; /* may exceed MOST_FIELDS; those beyond aren't kept */
};

static void split(struct line *line, const char *at, const char *end) {
    for (line->count = 0;; line->count++) {
        const char *tab = memchr(at, '\t', (size_t)(end - at));
        const char *field_end = tab ? tab : end;
        if (line->count < MOST_FIELDS) {
            line->fields[line->count] = (struct field){.at = at, .length = (size_t)(field_end - at)};
        }
        if (!tab) {
            line->count++;
            return;
        }
        at = tab + 1;
    }
}

static aclError read_number(const struct line *line, size_t index, const char *what, uint64_t *ret_value) {
    struct field field = line->fields[index];
    int status = decimal_parse(field.at, field.length, 0, ret_value);
    return status ? source_fail_field(line->source, field.at, field.length, what, decimal_complaint(status)) : ACL_SUCCESS;
}

static aclError need_text(const struct line *line, size_t index, const char *what) {
    return line->fields[index].length ? ACL_SUCCESS : source_fail(line->source, line->fields[index].at, "%s: is empty", what);
}

static aclError need_count(const struct line *line, size_t wanted, const char *form) {
    return line->count == wanted ? ACL_SUCCESS
                                 : source_fail(line->source, line->fields[0].at, "%zu fields, but \"%s\" (single tabs between) has %zu",
                                               line->count, form, wanted);
}

static aclError read_operator(const struct line *line, struct workload *workload) {
    uint64_t start_ns = 0;
    uint64_t duration_ns = 0;
    aclError error = need_count(line, 5, "op START_NS DURATION_NS TYPE NAME");
    error = error ? error : read_number(line, 1, "start", &start_ns);
    error = error ? error : read_number(line, 2, "duration", &duration_ns);
    error = error ? error : need_text(line, 3, "type");
    error = error ? error : need_text(line, 4, "name");
    if (error) {
        return error;
    }
    return workload_add_operator(workload, strndup(line->fields[4].at, line->fields[4].length),
                                 strndup(line->fields[3].at, line->fields[3].length), start_ns, duration_ns);
}

static aclError read_tensor(const struct line *line, struct workload_tensors *tensors) {
    uint64_t bytes = 0;
    aclError error = need_count(line, 3, "input|output NAME BYTES");
    error = error ? error : need_text(line, 1, "name");
    error = error ? error : read_number(line, 2, "size", &bytes);
    if (error) {
        return error;
    }
    if (line->fields[1].length >= ACL_MAX_TENSOR_NAME_LEN) {
        return source_fail(line->source, line->fields[1].at, "name: is longer than %d bytes", ACL_MAX_TENSOR_NAME_LEN - 1);
    }
    if (bytes == 0 || bytes > UINT32_MAX) {
        return source_fail(line->source, line->fields[2].at, "size: is not within 1 to 4294967295 bytes");
    }
    struct workload_tensor tensor = {
        .dims = {.dimCount = 1, .dims = {(int64_t)bytes}},
        .format = ACL_FORMAT_ND,
        .data_type = ACL_UINT8,
        .bytes = bytes,
    };
    memcpy(tensor.dims.name, line->fields[1].at, line->fields[1].length);
    return workload_add_tensor(tensors, &tensor);
}

static bool says(struct field field, const char *word) {
    return field.length == strlen(word) && memcmp(field.at, word, field.length) == 0;
}

static aclError read_line(const struct line *line, struct workload *workload) {
    struct field keyword = line->fields[0];
    if (line->count == 1 && keyword.length == 0) {
        return ACL_SUCCESS;
    }
    if (says(keyword, "op")) {
        return read_operator(line, workload);
    }
    if (says(keyword, "input")) {
        return read_tensor(line, &workload->inputs);
    }
    if (says(keyword, "output")) {
        return read_tensor(line, &workload->outputs);
    }
    return source_fail_field(line->source, keyword.at, keyword.length, "line", "is none of op, input and output");
}

bool workload_is_text(const struct source *source) {
    size_t length = strlen(MAGIC);
    return (size_t)(source->end - source->text) >= length && memcmp(source->text, MAGIC, length) == 0;
}

aclError workload_parse_text(const struct source *source, struct workload *workload) {
    struct line line = {.source = source};
    const char *at = source->text;
    while (at < source->end) {
        const char *newline = memchr(at, '\n', (size_t)(source->end - at));
        const char *end = newline ? newline : source->end;
        const char *next = newline ? newline + 1 : source->end;
        if (end > at && end[-1] == '\r') {
            end--;
        }
        if (at == source->text) {
            if (!says((struct field){.at = at, .length = (size_t)(end - at)}, FIRST_LINE)) {
                return source_fail(source, at, "the first line is not \"%s\"", FIRST_LINE);
            }
        } else if (*at != '#') {
            split(&line, at, end);
            aclError error = read_line(&line, workload);
            if (error) {
                return error;
            }
        }
        at = next;
    }
    return ACL_SUCCESS;
}
