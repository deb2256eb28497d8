#include "queue.h"

#include "journal.h"

#include <sys/mman.h>
#include <time.h>

/* Once it has waited, the producer goes on only when so many places are free: woken for each one, it would cost the writer a system
 * call per record. */
#define QUEUE_WAKE_FREE 2048u

int queue_open(struct queue *queue) {
    void *slots = mmap(NULL, QUEUE_RECORDS * sizeof(struct record), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED) {
        return -1;
    }
    queue->slots = slots;
    atomic_store(&queue->head, 0);
    atomic_store(&queue->tail, 0);
    atomic_store(&queue->held, 0);
    atomic_store(&queue->drain_target, QUEUE_NEVER);
    atomic_store(&queue->writer_sleeps, false);
    atomic_store(&queue->producer_sleeps, false);
    atomic_store(&queue->stop, false);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return 0;
}

void queue_close(struct queue *queue) {
    munmap(queue->slots, QUEUE_RECORDS * sizeof(struct record));
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->changed);
}

static void wake_all(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

/* Sleeping and waking are both sequentially consistent: either the sleeper sees the new head or tail, or the waker sees the sleeper. */

static void wait_for_room(struct queue *queue, uint64_t tail) {
    journal_add(JOURNAL_PRODUCER_WAITS, 1);
    pthread_mutex_lock(&queue->lock);
    atomic_store(&queue->producer_sleeps, true);
    while (tail - atomic_load(&queue->head) > QUEUE_RECORDS - QUEUE_WAKE_FREE) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    atomic_store(&queue->producer_sleeps, false);
    pthread_mutex_unlock(&queue->lock);
}

void queue_push(struct queue *queue, const struct record *record) {
    uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
    if (tail - atomic_load_explicit(&queue->head, memory_order_acquire) == QUEUE_RECORDS) {
        wait_for_room(queue, tail);
    }
    queue->slots[tail % QUEUE_RECORDS] = *record;
    atomic_store(&queue->tail, tail + 1);
    if (atomic_load(&queue->writer_sleeps)) {
        wake_all(queue);
    }
}

static bool empty(struct queue *queue) {
    return atomic_load(&queue->tail) == atomic_load_explicit(&queue->head, memory_order_relaxed);
}

bool queue_stopped(struct queue *queue) {
    return atomic_load(&queue->stop);
}

const struct record *queue_front(struct queue *queue, uint64_t deadline_ns, bool *ret_slept) {
    *ret_slept = empty(queue);
    if (*ret_slept) {
        struct timespec deadline = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
        bool in_time = true;
        pthread_mutex_lock(&queue->lock);
        atomic_store(&queue->writer_sleeps, true);
        while (empty(queue) && !queue_stopped(queue) && in_time && (deadline_ns == QUEUE_NEVER || !queue_awaits_held(queue))) {
            if (deadline_ns == QUEUE_NEVER) {
                pthread_cond_wait(&queue->changed, &queue->lock);
            } else {
                in_time = pthread_cond_timedwait(&queue->changed, &queue->lock, &deadline) == 0;
            }
        }
        atomic_store(&queue->writer_sleeps, false);
        pthread_mutex_unlock(&queue->lock);
        if (empty(queue)) {
            return NULL;
        }
    }
    return &queue->slots[atomic_load_explicit(&queue->head, memory_order_relaxed) % QUEUE_RECORDS];
}

static void tell_drainer(struct queue *queue, uint64_t head) {
    if (head >= atomic_load(&queue->drain_target)) {
        wake_all(queue);
    }
}

void queue_pop(struct queue *queue) {
    uint64_t head = atomic_load_explicit(&queue->head, memory_order_relaxed) + 1;
    atomic_store(&queue->head, head);
    if (atomic_load(&queue->producer_sleeps) &&
        atomic_load_explicit(&queue->tail, memory_order_relaxed) - head <= QUEUE_RECORDS - QUEUE_WAKE_FREE) {
        wake_all(queue);
    }
    tell_drainer(queue, head);
}

void queue_hold(struct queue *queue, uint64_t held) {
    atomic_store(&queue->held, held);
    tell_drainer(queue, atomic_load_explicit(&queue->head, memory_order_relaxed));
}

bool queue_awaits_held(struct queue *queue) {
    return atomic_load_explicit(&queue->head, memory_order_relaxed) >= atomic_load(&queue->drain_target);
}

void queue_drain(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    uint64_t target = atomic_load(&queue->tail);
    atomic_store(&queue->drain_target, target);
    pthread_cond_broadcast(&queue->changed);
    while (atomic_load(&queue->head) < target || atomic_load(&queue->held) > 0) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    atomic_store(&queue->drain_target, QUEUE_NEVER);
    pthread_mutex_unlock(&queue->lock);
}

void queue_stop(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    atomic_store(&queue->stop, true);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}
