/* bell.h: wakes a thread that polls. Unlike an eventfd, of which all are one file to fstat, it is known again: what the application has
 * closed and reused is neither written to nor read. */
#ifndef OPSTREAM_BELL_H
#define OPSTREAM_BELL_H

#include "descriptor.h"

struct bell {
    int heard_fd, rung_fd; /* two ends of a socket pair */
    struct descriptor_identity heard, rung;
};

/* OPSTREAM_E_SYSTEM: no descriptors. */
int bell_make(struct bell *ret_bell);

/* Closes what is still its own. A bell of zeros has nothing. */
void bell_close(struct bell *bell);

/* Any thread; never blocks. */
void bell_ring(const struct bell *bell);

/* To poll for POLLIN: −1 when the application has closed either end. */
int bell_fd(const struct bell *bell);

/* The thread that polls: forgets what has been rung. */
void bell_silence(const struct bell *bell);

#endif
