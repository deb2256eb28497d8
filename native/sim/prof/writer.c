#include "writer.h"

#include "journal.h"
#include "names.h"
#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define RETRY_NS 1000000u /* a full pipe that doesn't block is tried again */
#define SLOW_NS 100000u   /* a write that took longer may have met a full pipe */

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void pause_ns(uint64_t ns) {
    struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (nanosleep(&left, &left) != 0)
        ;
}

/* One write(2), unless the descriptor takes less than it is given (a pipe doesn't). Returns whether all of it went out. */
static bool write_bytes(struct writer *writer, const uint8_t *bytes, size_t count) {
    while (count > 0) {
        int *fd = atomic_load(&writer->fd);
        ssize_t written = write(__atomic_load_n(fd, __ATOMIC_RELAXED), bytes, count);
        if (written >= 0) {
            bytes += written;
            count -= (size_t)written;
        } else if (errno == EAGAIN) {
            pause_ns(RETRY_NS);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* How often this thread has given up its processor by itself. */
static long waits(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

/* The next write's time counts from here. */
static void begin_write(struct writer *writer) {
    writer->waits = waits();
    writer->last_ns = now_ns();
}

/* A slow write has waited for the pipe, unless the thread was only made to share its processor. */
static void count_blocked(struct writer *writer) {
    uint64_t now = now_ns();
    if (now - writer->last_ns > SLOW_NS) {
        long before = writer->waits;
        writer->waits = waits();
        if (writer->waits != before) {
            journal_add(JOURNAL_WRITER_BLOCKED_NS, now - writer->last_ns);
        }
    }
    writer->last_ns = now;
}

static void pause_for(struct writer *writer, enum fault_kind kind) {
    pause_ns(fault_time_ns(kind));
    begin_write(writer);
}

static void put_end_before_start(struct record *record) {
    uint64_t start = record->start;
    record->start = record->end;
    record->end = record->end == start ? start - 1 : start;
}

static void emit(struct writer *writer, struct record record, enum fault_kind fault) {
    if (fault_microseconds()) {
        record.start /= 1000;
        record.end /= 1000;
        record.duration /= 1000;
    }
    if (fault == FAULT_END_BEFORE_START) {
        put_end_before_start(&record);
    }
    if (fault == FAULT_GETTER_ERROR || fault == FAULT_GETTER_REFUSAL) {
        names_refuse(record.name_index, fault == FAULT_GETTER_REFUSAL);
    }

    uint8_t bytes[RECORD_MAX_BYTES];
    record_pack(&record, bytes);
    size_t count = record_bytes();
    size_t part = 0;
    if (fault == FAULT_CORRUPT) {
        uint64_t bit = fault_random(&writer->faults, count * 8);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    if (fault == FAULT_STALL) {
        pause_for(writer, fault);
    }
    bool sent = true;
    if (fault == FAULT_PARTIAL_WRITE || fault == FAULT_TRUNCATED) {
        part = 1 + fault_random(&writer->faults, count - 1);
        sent = write_bytes(writer, bytes, part);
        count_blocked(writer);
    }
    if (fault == FAULT_PARTIAL_WRITE) {
        pause_for(writer, fault);
    }
    if (fault != FAULT_TRUNCATED) {
        sent = write_bytes(writer, bytes + part, count - part) && sent;
        count_blocked(writer);
    }

    if (!sent) {
        journal_add(JOURNAL_RECORDS_LOST, 1);
    } else if (fault != FAULT_CORRUPT && fault != FAULT_TRUNCATED) {
        journal_add(JOURNAL_RECORDS_WRITTEN, 1);
    }
    if (sent && fault != FAULT_NONE) {
        journal_add(JOURNAL_FAULTS + fault, 1);
    }
}

static void swap(struct late_record *a, struct late_record *b) {
    struct late_record kept = *a;
    *a = *b;
    *b = kept;
}

static void add_late(struct writer *writer, const struct record *record) {
    struct late_record *heap = writer->late;
    size_t at = writer->late_count++;
    heap[at].record = *record;
    heap[at].due_ns = now_ns() + 1 + fault_random(&writer->faults, fault_time_ns(FAULT_LATE));
    for (; at > 0 && heap[at].due_ns < heap[(at - 1) / 2].due_ns; at = (at - 1) / 2) {
        swap(&heap[at], &heap[(at - 1) / 2]);
    }
    queue_hold(&writer->queue, writer->late_count);
}

static void emit_earliest(struct writer *writer) {
    struct late_record *heap = writer->late;
    emit(writer, heap[0].record, FAULT_LATE);
    heap[0] = heap[--writer->late_count];
    for (size_t at = 0, child; (child = at * 2 + 1) < writer->late_count; at = child) {
        if (child + 1 < writer->late_count && heap[child + 1].due_ns < heap[child].due_ns) {
            child++;
        }
        if (heap[at].due_ns <= heap[child].due_ns) {
            break;
        }
        swap(&heap[at], &heap[child]);
    }
    queue_hold(&writer->queue, writer->late_count);
}

/* Lets those late records go that are due, or that somebody who drains is waiting for. */
static void emit_due(struct writer *writer) {
    while (writer->late_count > 0 && (writer->late[0].due_ns <= now_ns() || queue_awaits_held(&writer->queue))) {
        emit_earliest(writer);
    }
}

static void *run(void *argument) {
    struct writer *writer = argument;
    for (;;) {
        emit_due(writer);
        bool slept;
        const struct record *record = queue_front(&writer->queue, writer->late_count > 0 ? writer->late[0].due_ns : QUEUE_NEVER, &slept);
        if (!record && queue_stopped(&writer->queue)) {
            return NULL;
        }
        if (slept) {
            begin_write(writer);
        }
        if (!record) {
            continue;
        }
        enum fault_kind fault = fault_draw(&writer->faults);
        if (fault == FAULT_LATE) {
            if (writer->late_count == WRITER_MAX_LATE) {
                emit_earliest(writer);
            }
            add_late(writer, record);
        } else {
            emit(writer, *record, fault);
        }
        queue_pop(&writer->queue);
    }
}

int writer_start(struct writer *writer, uint32_t device) {
    writer->device = device;
    writer->late_count = 0;
    writer->last_ns = now_ns();
    fault_seed(&writer->faults, device);
    writer->late = malloc(WRITER_MAX_LATE * sizeof *writer->late);
    if (!writer->late) {
        return -1;
    }
    if (queue_open(&writer->queue) != 0) {
        free(writer->late);
        return -1;
    }
    if (pthread_create(&writer->thread, NULL, run, writer) != 0) {
        queue_close(&writer->queue);
        free(writer->late);
        return -1;
    }
    char name[16];
    snprintf(name, sizeof name, "sim-writer-%u", device);
    pthread_setname_np(writer->thread, name);
    return 0;
}

void writer_stop(struct writer *writer) {
    queue_drain(&writer->queue);
    queue_stop(&writer->queue);
    pthread_join(writer->thread, NULL);
    queue_close(&writer->queue);
    free(writer->late);
}
