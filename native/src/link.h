/* link.h: the connection to the daemon: connects without blocking, says hello with the segment's descriptor, and tries again for ever. A
 * state machine without a thread: the control thread drives it.
 *
 * Attempts are 0.9 s apart, so that a connection that lasted longer is made anew at once; after a refusal, or a daemon of another version,
 * 30 s. Up to a tenth is added: a daemon that comes back hears of all its publishers within a second, but not in one moment. A listener
 * that is neither root's, nor of the own uid, nor of `daemon_uid` is told nothing and obeyed in nothing. */
#ifndef OPSTREAM_LINK_H
#define OPSTREAM_LINK_H

#include "segment.h"

struct link;

/* Does not connect yet. `daemon_uid`: UINT32_MAX = nobody besides. `writer` outlives it. OPSTREAM_E_INVALID: a path longer than a
 * socket's. */
int link_new(const char *socket_path, uint32_t daemon_uid, const struct segment_writer *writer, struct link **ret_link);

/* Descriptor and events (POLLIN, POLLOUT or 0) to poll for, and when to call again at the latest (CLOCK_MONOTONIC). fd −1 = none. */
void link_wants(const struct link *link, int *ret_fd, short *ret_events, uint64_t *ret_deadline_ns);

/* Goes on: after poll, at the deadline, or at any time. Never blocks. */
void link_step(struct link *link, uint64_t now_ns);
int link_state(const struct link *link); /* enum opstream_link_state; any thread */

/* Says goodbye when connected, closes, and connects no more. */
void link_goodbye(struct link *link);

/* With a goodbye. */
void link_free(struct link *link);

#endif
