/* tally.h: what an application has made, as one JSON line. */
#ifndef OPSTREAM_SIM_TALLY_H
#define OPSTREAM_SIM_TALLY_H

#include "workload.h"

/* Executions, records (with the one that ends each execution), and per type of operator its runs and summed nanoseconds. */
void tally_print(const struct workload *workload, uint64_t executions);

#endif
