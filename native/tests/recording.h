/* recording.h: an operator's run in a test, by its texts. */
#ifndef OPSTREAM_RECORDING_H
#define OPSTREAM_RECORDING_H

#include <string.h>

#include "series.h"

static inline bool record_operator(struct series_table *table, uint32_t model_row, const char *type, const char *name, uint64_t duration_ns,
                                   uint64_t wall_ns, uint64_t now_ns) {
    struct operator_run run = {.type = type, .name = name, .type_length = strlen(type), .name_length = strlen(name)};
    struct moment now = moment_of(now_ns, wall_ns);
    return series_record(table, model_row, &run, duration_ns, &now);
}

#endif
