/* channel.h: orders from the control thread to the reader thread, with a descriptor where one goes along, and a bell for the way back.
 *
 * A socket pair of which each thread has one end in its own table. The control thread's end is in the application's table, so it is looked
 * at before each use; when it is gone, orders fail. */
#ifndef OPSTREAM_CHANNEL_H
#define OPSTREAM_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "descriptor.h"

struct channel {
    int control_fd, reader_fd;
    struct descriptor_identity control_identity;
    _Atomic uint32_t ordered, done; /* numbers of orders; what is ordered was written before, what is done can be seen after */
};

int channel_open(struct channel *ret_channel);
void channel_close_control(struct channel *channel);
void channel_close_reader(struct channel *channel);

/* Control thread: sends an order (and descriptor, when it isn't −1) and waits until it is done. OPSTREAM_E_BUSY: not done in time, but it
 * will be; OPSTREAM_E_SYSTEM: it can't be sent. */
int channel_order(struct channel *channel, const void *order, size_t order_bytes, int fd, uint64_t timeout_ns);

/* Any thread: makes the reader's end readable, without an order. */
void channel_wake(struct channel *channel);

/* Reader thread. Whether an order is under way: no system call. */
bool channel_has_order(const struct channel *channel);

/* Reader thread. The next order, false when there is none; never blocks. reader_fd becomes −1 when the other end is gone. */
bool channel_next(struct channel *channel, void *ret_order, size_t order_bytes, int *ret_fd);
void channel_done(struct channel *channel);

/* The bell: makes control_fd readable (reader thread), until it is silenced (control thread). */
void channel_ring(struct channel *channel);
void channel_silence(struct channel *channel);

/* Control thread: control_fd while it is ours, to poll; else −1. */
int channel_bell_fd(const struct channel *channel);

#endif
