/* inlet.h: a device's pipe as the reader has it: how full it is, what is read from it, and how long it can be left alone. Reader thread
 * only. */
#ifndef OPSTREAM_INLET_H
#define OPSTREAM_INLET_H

#include "account.h"
#include "frame.h"

struct inlet {
    uint32_t device;
    int fd;                /* in the reader's own table; −1 = not handed over yet */
    bool earlier;          /* the device has a newer one */
    size_t capacity_bytes; /* as the kernel tells */
    size_t usable_bytes;   /* less: pages are filled with whole records only */
    struct frame *frame;
    struct device_clock clock;
    uint64_t read_ns;            /* when it was read last: CLOCK_MONOTONIC */
    uint64_t over_half_since_ns; /* 0 = it is not */
    uint64_t nap_ns;             /* after the last read */
};

/* Any thread. `vendor` outlives it. */
int inlet_new(const struct vendor *vendor, size_t record_bytes, uint32_t device, size_t capacity_bytes, struct inlet **ret_inlet);
void inlet_free(struct inlet *inlet);

/* Bytes that are in the pipe. */
size_t inlet_fill(const struct inlet *inlet);

/* Reads what `fill` says is there, as far as the frame has room, and counts the fill and the bytes taken. These are counted before they
 * leave the pipe, so that they are accounted for wherever the process is killed. With `keep` false the bytes are gone after that. Returns
 * their number; never blocks. */
size_t inlet_read(struct inlet *inlet, size_t fill, bool keep, uint64_t now_ns, struct segment_counters *counters);

/* There was nothing to read. */
void inlet_is_empty(struct inlet *inlet);

/* How long a fill has stayed over half of the pipe, at each look, up to now. */
uint64_t inlet_over_half_ns(const struct inlet *inlet, uint64_t now_ns);

#endif
