/* holdback.h: decoded runs that wait until the unit of time is known, in the order in which they came. Reader thread only; all memory is
 * had at the start. */
#ifndef OPSTREAM_HOLDBACK_H
#define OPSTREAM_HOLDBACK_H

#include "decode.h"

struct device_clock;
struct holdback;

struct held_run {
    struct operator_run run; /* its strings are the holdback's */
    struct device_clock *clock;
    uint32_t model_row;
    uint64_t arrival_ns;
};

int holdback_new(struct holdback **ret_holdback);
void holdback_free(struct holdback *holdback);

/* Copies a run. false: there is no room for it (TIMEUNIT_HELD_MAX runs, or their strings' memory). */
bool holdback_push(struct holdback *holdback, const struct held_run *held);

/* Takes the oldest run out; valid until the next push. false: none is left. */
bool holdback_pop(struct holdback *holdback, struct held_run *ret_held);
uint64_t holdback_count(const struct holdback *holdback);

/* When the first one came: CLOCK_MONOTONIC. */
uint64_t holdback_since_ns(const struct holdback *holdback);

#endif
