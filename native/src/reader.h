/* reader.h: the reader thread: from the pipes to the segment.
 *
 * It has a descriptor table of its own (unshare(CLONE_FILES)): the application can't close, reuse or inherit away what it reads from. It
 * takes no lock, allocates nothing per record, naps 0.1 to 1 ms after a read that found something (less as the pipe fills), and blocks in
 * epoll when there is nothing. */
#ifndef OPSTREAM_READER_H
#define OPSTREAM_READER_H

#include "segment.h"
#include "vendor.h"

struct reader;

/* Makes the thread: all signals blocked, cancellation off, SCHED_OTHER, all processors. `vendor` and `writer` outlive it.
 * Calls nothing of the vendor's. Control thread. */
int reader_start(const struct vendor *vendor, struct segment_writer *writer, struct reader **ret_reader);

/* Hands over the read end of a device's pipe (capacity_bytes as had by F_SETPIPE_SZ): sent by SCM_RIGHTS into the reader's own table; the
 * caller closes its own copy afterwards. Returns when the reader has it. Each call makes the earlier pipe of that device one that is read
 * until its end of file or until nothing more is in it at the next hand-over. The first call asks the vendor for the size of a record, so
 * it comes after the application's aclInit (OPSTREAM_E_LIBRARY: no usable answer). Control thread. */
int reader_add_pipe(struct reader *reader, uint32_t device, int read_fd, size_t capacity_bytes);

/* From now on records of `model_id` count for `model_row`. Kept until the id is mapped anew: late records still find their row. Before the
 * subscribe call. The model's busy time begins anew with whatever its device's clock shows then. `subscribed_ns`: CLOCK_MONOTONIC. Waits
 * until the reader knows of it, 1 s at most. Control thread. */
void reader_map_model(struct reader *reader, uint32_t model_id, uint32_t model_row, uint64_t subscribed_ns);

/* Returns when every byte that was in the pipes at the call is counted (1 s at most; OPSTREAM_E_BUSY then). Nothing waits for anything
 * later: runs that are held back while the unit of time is unknown are counted, waiting intervals are final. OPSTREAM_E_SYSTEM: the
 * application has closed what the orders go through. Control thread. */
int reader_flush(struct reader *reader);

/* Readable when a pipe stayed over half for a second (the publisher must unsubscribe); reader_pressure clears it and says whether it was
 * so. Control thread. The descriptor is the reader's own and in the process's table: −1 when the application has closed it. */
int reader_pressure_fd(const struct reader *reader);
bool reader_pressure(struct reader *reader);

/* From now on it reads and discards, and calls nothing of the vendor's. Returns when no getter is running (or after 1 s). For exit(); any
 * thread. */
void reader_drain_only(struct reader *reader);

/* Called in the reader thread after the first decoded record of the process: registers the exit handler again (handlers run last in, first
 * out, and the vendor's destructor is registered with its first record). */
void reader_on_first_record(struct reader *reader, void (*callback)(void *), void *context);

/* Ends the thread and frees everything. When nothing is subscribed any more. NULL does nothing. Control thread. */
void reader_stop(struct reader *reader);

#endif
