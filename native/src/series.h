/* series.h: (model row, type, name) → row of SERIES, by a hash table in private memory that is allocated once. Reader thread only. */
#ifndef OPSTREAM_SERIES_H
#define OPSTREAM_SERIES_H

#include "segment.h"

struct series_table;

int series_table_new(struct segment_writer *writer, struct series_table **ret_table);
void series_table_free(struct series_table *table);

/* Adds one run of an operator. `type` and `name` are as the vendor gave them (any bytes but NUL), lengths without NUL.
 * No free row or no page: the row (model, type, "(other)") takes it, for which a sixteenth of SERIES is kept; when there is no such row
 * either, OTHERS[model_row], which always exists. Returns false when the record went to one of these (to be counted as overflowed). Never
 * fails, never allocates. */
bool series_record(struct series_table *table, uint32_t model_row, const char *type, size_t type_length, const char *name,
                   size_t name_length, uint64_t duration_ns, uint64_t wall_ns, uint64_t now_ns);

#endif
