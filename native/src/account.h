/* account.h: from an operator's run to the segment: its model's row, its time in nanoseconds, and every count that it changes. Reader
 * thread, where not told otherwise. */
#ifndef OPSTREAM_ACCOUNT_H
#define OPSTREAM_ACCOUNT_H

#include "decode.h"
#include "segment.h"
#include "timeunit.h"

struct account;

/* What is known of one device's clock: each device has its own, though all have the same unit. */
struct device_clock {
    struct timeunit evidence;
    uint64_t window; /* CLOCK_MONOTONIC / WINDOW_NS */
    /* The smallest of host's time at arrival - end on the device: in the window, in the one before, in both. */
    int64_t present_lag_ns, earlier_lag_ns, smallest_lag_ns;
};

/* Has all memory that it will ever need, except for models' rows. `writer` outlives it. */
int account_new(struct segment_writer *writer, struct account **ret_account);
void account_free(struct account *account);

/* As reader_map_model. Control thread, at any time. */
void account_map_model(struct account *account, uint32_t model_id, uint32_t model_row, uint64_t subscribed_ns);

/* The model of this row is subscribed anew: its device's time may have begun again. */
void account_restart_model(struct account *account, uint32_t model_row);

/* A device's clock of which nothing is known yet. */
void account_clock_init(struct device_clock *ret_clock);

/* The host's time for all that follows. Runs that have been held back long enough are counted. */
void account_set_time(struct account *account, uint64_t now_ns, uint64_t wall_ns);

/* What the next run's texts are likely to be: as series_guess. */
const struct text_guess *account_guess(const struct account *account);

/* Counts a run, or holds it back while the unit of time is not known. It has been counted as read. `clock` lives until account_release. */
void account_run(struct account *account, struct device_clock *clock, const struct operator_run *run);

/* Ends the holding back, for ever: everything is counted. */
void account_release(struct account *account);

/* Nothing comes for now: all intervals are final. */
void account_settle(struct account *account);

/* Runs that are read, but not yet counted, and until when they are held back. */
uint64_t account_held(const struct account *account);
uint64_t account_held_until_ns(const struct account *account);

#endif
