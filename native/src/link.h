/* link.h: the connection to the daemon: connects without blocking, says hello with the segment's descriptor, and tries again for ever. A state machine without a thread: the control thread drives it. */
#ifndef OPSTREAM_LINK_H
#define OPSTREAM_LINK_H

#include "segment.h"

struct link;

int link_new(const char *socket_path, uint32_t daemon_uid, const struct segment_writer *writer, struct link **ret_link);

/* Descriptor and events (POLLIN, POLLOUT or 0) to poll for, and when to call again at the latest (CLOCK_MONOTONIC). fd −1 = none. */
void link_wants(const struct link *link, int *ret_fd, short *ret_events, uint64_t *ret_deadline_ns);

/* Goes on: after poll, or at the deadline. Never blocks. */
void link_step(struct link *link, uint64_t now_ns);
int link_state(const struct link *link);   /* enum opstream_link_state; any thread */
bool link_stop_asked(const struct link *link);

/* Says goodbye when connected, closes, frees. */
void link_free(struct link *link);

#endif
