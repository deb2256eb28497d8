/* What really happened: the truth that tests and benchmarks compare with what a client counted.
 *
 * OPSTREAM_SIM_JOURNAL=PATH maps a file shared, so that the counts outlive a process that is killed. The file is made when it isn't there;
 * one that is there is added to, so processes may share it. Without the variable the counts go to memory of the process.
 *
 * The file, little-endian, JOURNAL_BYTES long:
 *      0  u64 magic "OPSIMJNL"
 *      8  u64 version, 1
 *     16  u64 number of slots, 64
 *     24  u64 bytes of a slot, 32
 *     32  slots of {char name[24], NUL-padded; u64 value}; unused ones have an empty name
 *
 * Names, in this order:
 *     records_made         records that entered a device's queue (a subscribed model ran), key points included
 *     keypoints_made       those of them that mark the end of an execution: the number of executions
 *     records_written      written whole and with the right checksum
 *     records_lost         not written, as the descriptor was bad or nobody had the read end
 *     strings_made         names and types put into the name table
 *     strings_read         and consumed by a getter: what is missing leaks
 *     getter_calls         calls of the getters that verify, and the time spent in them
 *     getter_ns
 *     producer_waits       times that an execution found its device's queue full
 *     writer_blocked_ns    time of writes that waited for over 100 µs: the pipe was full
 *     fault.KIND           injected faults, see fault.h
 * At rest records_made = records_written + records_lost + fault.corrupt + fault.truncated. */
#ifndef OPSTREAM_SIM_JOURNAL_H
#define OPSTREAM_SIM_JOURNAL_H

#include <stdint.h>

enum journal_counter {
    JOURNAL_RECORDS_MADE,
    JOURNAL_KEYPOINTS_MADE,
    JOURNAL_RECORDS_WRITTEN,
    JOURNAL_RECORDS_LOST,
    JOURNAL_STRINGS_MADE,
    JOURNAL_STRINGS_READ,
    JOURNAL_GETTER_CALLS,
    JOURNAL_GETTER_NS,
    JOURNAL_PRODUCER_WAITS,
    JOURNAL_WRITER_BLOCKED_NS,
    JOURNAL_FAULTS, /* the first of the faults, in the order of enum fault_kind */
};

#define JOURNAL_MAGIC 0x4c4e4a4d4953504fULL
#define JOURNAL_SLOTS 64
#define JOURNAL_BYTES (32 + JOURNAL_SLOTS * 32)

/* Opens the journal; called once, before anything is counted. A file that can't be had is reported on stderr, and memory serves. */
void journal_open(void);

/* Any thread; never blocks. `counter` is an enum journal_counter, or JOURNAL_FAULTS plus an enum fault_kind. */
void journal_add(unsigned counter, uint64_t value);

#endif
