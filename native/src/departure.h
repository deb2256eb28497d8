/* departure.h: what must happen when a subscribed process exits or forks, as the vendor's destructors stand neither.
 *
 * exit() while records flow would run them under a reader that is still decoding, and for ever when nobody drained. In a forked child they
 * would join threads that it doesn't have, and crash: there the handler flushes stdio and ends the process with the same status; the
 * child's own earlier exit handlers and destructors don't run. */
#ifndef OPSTREAM_DEPARTURE_H
#define OPSTREAM_DEPARTURE_H

#include <stdbool.h>

/* Once per process, then nothing: `leave` is called in exit(), by whichever thread calls that; `forked` in each forked child
 * (async-signal-safe). */
void departure_prepare(void (*leave)(void), void (*forked)(void));

/* Registers the exit handler. To be called when the vendor's first subscription stands and, as the last, when its first record has been
 * decoded: handlers run last in, first out, and the vendor's are registered before these two moments. Any thread. */
void departure_register(void);
void departure_register_last(void);

/* Somebody has registered a handler, maybe the vendor. Who can tell calls it at once: exit() could come before the reader has anything to
 * decode. Any thread, at any time, also before anything else of this library has been called. */
void departure_others_registered(void);

/* Whether the vendor has threads here right now, so that a child forked from now on must not run its destructors. Any thread. */
void departure_set_subscribed(bool subscribed);

/* Whether this process was forked from one that was subscribed: of the vendor's it has only what is broken. Any thread. */
bool departure_child_of_subscribed(void);

#endif
