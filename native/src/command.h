/* command.h: what the control thread is asked for, and the queue of it: from any thread to the control thread. Who asks waits for the answer,
 * but not for ever: a command belongs to the queue, so that nobody's stack is needed when it is done at last. */
#ifndef OPSTREAM_COMMAND_H
#define OPSTREAM_COMMAND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "opstream.h"

enum command_kind { COMMAND_SUBSCRIBE, COMMAND_UNSUBSCRIBE, COMMAND_UNSUBSCRIBE_ALL, COMMAND_SUSPEND };

struct command {
    struct command *next;
    enum command_kind kind;
    uint32_t model_id, device; /* of a model */
    char name[256];            /* the same */
    int status, acl_error;     /* the answer */
    bool done, abandoned;      /* nobody waits any more */
};

/* Its owner's mutex is held at each call, and let go while command_wait waits. */
struct command_queue {
    struct command *first, **last;
};

void command_queue_init(struct command_queue *queue);

/* What nobody has taken is answered with OPSTREAM_E_STATE: who still waits frees it. */
void command_queue_close(struct command_queue *queue, pthread_cond_t *answered);

/* Appends it; the queue owns it from now on. */
void command_put(struct command_queue *queue, struct command *command);

/* The next one, NULL when there is none. */
struct command *command_take(struct command_queue *queue);

/* Removes the subscriptions of a model that nobody has taken yet: it is about to be unloaded. Answers them with OPSTREAM_E_STATE; returns
 * whether there were any. */
bool command_cancel(struct command_queue *queue, uint32_t model_id, pthread_cond_t *answered);

/* Answers it: to who waits, else it is freed. `answered` belongs to the same mutex and goes by CLOCK_MONOTONIC. */
void command_done(struct command *command, int status, pthread_cond_t *answered);

/* Waits until it is done, but `wait_ns` at most (OPSTREAM_E_BUSY), and gives it up. No cancellation point. */
int command_wait(struct command *command, uint64_t wait_ns, pthread_mutex_t *mutex, pthread_cond_t *answered, int *ret_acl_error);

#endif
