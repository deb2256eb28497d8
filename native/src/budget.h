/* budget.h: the loss budget as a reader sees it. */
#ifndef OPSTREAM_BUDGET_H
#define OPSTREAM_BUDGET_H

#include <stdbool.h>

#include "layout.h"

/* Brings the counts of records and of discarded bytes up to date. Afterwards, whatever the segment says, read = recorded + corrupt + name +
 * time + interrupted, and none is less than before. Of a living publisher as last committed; when it is just committing, three tries, then
 * everything stays as it was. Of a departed one all that it had taken from its pipes. */
void budget_read(const struct segment_counters *from, bool departed, struct opstream_counters *counters);

#endif
