/* What the runtime half tells its profiler, kept in order. Stands where libmsprofiler.so stands: at the table of sim.h. */
#ifndef OPSTREAM_SIM_RECORDS_H
#define OPSTREAM_SIM_RECORDS_H

#include <stddef.h>
#include <stdint.h>

struct record {
    uint32_t device;
    uint32_t model_id;
    char *name;
    char *type;
    uint64_t start_ns;
    uint64_t end_ns;
};

/* From now on all records and unloadings are kept. */
void records_attach(void);

/* Those kept so far. For when nothing is executing. */
size_t records_count(void);
const struct record *records_at(size_t index);
uint32_t records_last_unloaded(void);

/* The records of an execution as lines "START DURATION TYPE NAME", starts counted from its begin; the execution's own record is the last
 * line, without the start. The caller frees it. */
char *records_listing(void);
void records_clear(void);

#endif
