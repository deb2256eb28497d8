/* A device's queue of records on their way to its writer thread: 200,000 at most, then whoever makes the next one waits.
 *
 * One thread pops; one at a time pushes (the caller serialises them) and one at a time drains. */
#ifndef OPSTREAM_SIM_QUEUE_H
#define OPSTREAM_SIM_QUEUE_H

#include "record.h"

#include <pthread.h>
#include <stdatomic.h>

#define QUEUE_RECORDS 200000u
#define QUEUE_NEVER UINT64_MAX

struct queue {
    struct record *slots;
    _Atomic uint64_t head;         /* records popped */
    _Atomic uint64_t tail;         /* records pushed */
    _Atomic uint64_t held;         /* popped records that the writer has kept back */
    _Atomic uint64_t drain_target; /* whoever drains waits for this head; QUEUE_NEVER when nobody does */
    _Atomic bool writer_sleeps;
    _Atomic bool producer_sleeps;
    _Atomic bool stop;
    pthread_mutex_t lock; /* for sleeping only */
    pthread_cond_t changed;
};

/* Returns 0, or -1 without memory. */
int queue_open(struct queue *queue);
void queue_close(struct queue *queue);

/* Blocks while the queue is full. */
void queue_push(struct queue *queue, const struct record *record);

/* The oldest record, which stays in the queue until queue_pop; `ret_slept` tells whether it had to be waited for. NULL when none came until
 * `deadline_ns` (CLOCK_MONOTONIC), when somebody waits for the records that are kept back while `deadline_ns` isn't QUEUE_NEVER, and
 * once the queue is empty and was stopped. */
const struct record *queue_front(struct queue *queue, uint64_t deadline_ns, bool *ret_slept);
bool queue_stopped(struct queue *queue);
void queue_pop(struct queue *queue);

/* The writer says how many popped records it keeps back, and asks whether somebody who drains waits for nothing but those. */
void queue_hold(struct queue *queue, uint64_t held);
bool queue_awaits_held(struct queue *queue);

/* Blocks until all that was pushed before has been popped and none is kept back: for ever, when the writer can't write. */
void queue_drain(struct queue *queue);

/* Ends the writer's wait for good, once the queue is empty. */
void queue_stop(struct queue *queue);

#endif
