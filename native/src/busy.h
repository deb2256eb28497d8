/* busy.h: time in which at least one operator of a model ran, and time inside its executions in which none did.
 *
 * Records arrive out of order and overlap, so intervals wait behind a horizon: 1 s of device time before the newest end, or the oldest of
 * 16,384 intervals, whichever comes first; then they are final. An interval of which a part is final already counts as late; the rest of it
 * still counts. The gap of an execution (the interval of a keypoint) counts as its time becomes final, and what is final already when it
 * comes counts from final intervals that are kept for it, so that executions longer than the horizon have their gap too (as far back as the
 * last 16,384 intervals reach). Concurrent executions of a model count their common gap once. */
#ifndef OPSTREAM_BUSY_H
#define OPSTREAM_BUSY_H

#include "segment.h"

#define BUSY_HORIZON_NS UINT64_C(1000000000)
#define BUSY_INTERVALS_MAX 16384u

struct busy; /* one per model row; reader thread only */

int busy_new(struct segment_model *model, struct busy **ret_busy);
void busy_free(struct busy *busy);

/* Never allocates. Amortised cost for intervals that arrive nearly in order: constant. Times in ns of device time, end ≥ start. */
void busy_operator(struct busy *busy, uint64_t start_ns, uint64_t end_ns);
void busy_execution(struct busy *busy, uint64_t start_ns, uint64_t end_ns);

/* Nothing came for a second of the host's time: everything waiting is final. */
void busy_settle(struct busy *busy);

/* The model is subscribed anew: settles, and lets device time begin again (a device that was reset counts from 0, and everything would be
 * late). */
void busy_restart(struct busy *busy);

#endif
