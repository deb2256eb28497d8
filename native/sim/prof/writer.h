/* The thread that writes a device's records into its pipe, one write(2) each. */
#ifndef OPSTREAM_SIM_WRITER_H
#define OPSTREAM_SIM_WRITER_H

#include "fault.h"
#include "queue.h"

struct late_record {
    struct record record;
    uint64_t due_ns;
};

#define WRITER_MAX_LATE 4096u

struct writer {
    struct queue queue;
    uint32_t device;
    /* The client's int: read at every attempt to write, never kept. */
    int *_Atomic fd;
    pthread_t thread;
    /* The thread's own */
    struct fault_source faults;
    uint64_t last_ns;         /* when it last did something that was not waiting for the pipe */
    long waits;               /* of this thread by then */
    struct late_record *late; /* a heap, the earliest due first */
    size_t late_count;
};

/* Starts the thread, which inherits the caller's signal mask. Returns 0, or -1 without memory or threads; then nothing is left. */
int writer_start(struct writer *writer, uint32_t device);

/* Writes what is queued, ends the thread and frees all. */
void writer_stop(struct writer *writer);

#endif
