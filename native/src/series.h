/* series.h: (model row, type, name) → row of SERIES, by a hash table in private memory that is allocated once. Reader thread only. */
#ifndef OPSTREAM_SERIES_H
#define OPSTREAM_SERIES_H

#include "decode.h"
#include "moment.h"
#include "segment.h"

struct series_table;

int series_table_new(struct segment_writer *writer, struct series_table **ret_table);
void series_table_free(struct series_table *table);

/* The texts of the operator that followed the latest one the last time. The table's, for ever; series_record changes what is in it. */
const struct text_guess *series_guess(const struct series_table *table);

/* Adds one run of an operator: of `run` its type and name are looked at, which are as the vendor gave them (any bytes but NUL).
 * No free row or no page: the row (model, type, "(other)") takes it, for which a sixteenth of SERIES is kept; when there is no such row
 * either, OTHERS[model_row], which always exists. Returns false when the record went to one of these (to be counted as overflowed). Never
 * fails, never allocates. */
bool series_record(struct series_table *table, uint32_t model_row, const struct operator_run *run, uint64_t duration_ns,
                   const struct moment *now);

#endif
