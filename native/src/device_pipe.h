/* device_pipe.h: the pipe of each device, from the vendor's writer thread to our reader. One per device and process: static storage.
 * Control thread only.
 *
 * The vendor keeps a pointer to an int that holds the write end: it reads the int at every record, and at the last device's unsubscribing
 * closes the descriptor and sets the int to -1. So the int is there as long as the process, and is the only truth about the pipe: while it
 * names our write end the pipe is open, else there is none. */
#ifndef OPSTREAM_DEVICE_PIPE_H
#define OPSTREAM_DEVICE_PIPE_H

#include "reader.h"

#define DEVICES_MAX 64u

/* Sees to it that `device` (below DEVICES_MAX) has a pipe of which `reader` reads the other end. A new one has 1 MiB, else 256 KiB, 64 KiB,
 * or what a pipe has: all pipes of a user share pipe-user-pages-soft, past which each new one of his has 8 KiB, so ours grow only within
 * half of it. (Counted are this process's own; what else the user has can't be known.) */
int device_pipe_open(uint32_t device, struct reader *reader);

/* The vendor's int. */
int *device_pipe_write_end(uint32_t device);

/* Before each call that lets the vendor use or close the write end: when its number has become something else (the application closed
 * what isn't its own), the vendor gets -1 instead. */
void device_pipe_check(uint32_t device);

/* Takes the write end back from a vendor who doesn't use it, or won't give it up: -1 first, then it is closed. */
void device_pipe_close(uint32_t device);

/* All of them. Async-signal-safe: in a forked child they are copies of its parent's, and must not be taken for its own. */
void device_pipes_close(void);

#endif
