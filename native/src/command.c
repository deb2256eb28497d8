#include "command.h"

#include <stdlib.h>

#include "clock.h"

void command_queue_init(struct command_queue *queue) {
    queue->first = NULL;
    queue->last = &queue->first;
}

void command_queue_close(struct command_queue *queue, pthread_cond_t *answered) {
    for (struct command *command; (command = command_take(queue)) != NULL;) {
        command_done(command, OPSTREAM_E_STATE, answered);
    }
}

void command_put(struct command_queue *queue, struct command *command) {
    command->next = NULL;
    *queue->last = command;
    queue->last = &command->next;
}

struct command *command_take(struct command_queue *queue) {
    struct command *command = queue->first;
    if (command) {
        queue->first = command->next;
        if (!queue->first) {
            queue->last = &queue->first;
        }
    }
    return command;
}

bool command_cancel(struct command_queue *queue, uint32_t model_id, pthread_cond_t *answered) {
    bool any = false;
    struct command **at = &queue->first;
    while (*at) {
        struct command *command = *at;
        if (command->kind != COMMAND_SUBSCRIBE || command->model_id != model_id) {
            at = &command->next;
            continue;
        }
        *at = command->next;
        any = true;
        command_done(command, OPSTREAM_E_STATE, answered);
    }
    queue->last = at;
    return any;
}

void command_done(struct command *command, int status, pthread_cond_t *answered) {
    if (command->abandoned) {
        free(command);
        return;
    }
    command->status = status;
    command->done = true;
    pthread_cond_broadcast(answered);
}

int command_wait(struct command *command, uint64_t wait_ns, pthread_mutex_t *mutex, pthread_cond_t *answered, int *ret_acl_error) {
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t end_ns = wait_ns < UINT64_MAX - now_ns ? now_ns + wait_ns : UINT64_MAX;
    struct timespec end = {.tv_sec = (time_t)(end_ns / CLOCK_SECOND_NS), .tv_nsec = (long)(end_ns % CLOCK_SECOND_NS)};
    int cancellation, error = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
    while (!command->done && error == 0) {
        error = end_ns == UINT64_MAX ? pthread_cond_wait(answered, mutex) : pthread_cond_timedwait(answered, mutex, &end);
    }
    pthread_setcancelstate(cancellation, NULL);
    if (!command->done) {
        command->abandoned = true;
        return OPSTREAM_E_BUSY;
    }
    int status = command->status;
    if (status == OPSTREAM_E_VENDOR && ret_acl_error) {
        *ret_acl_error = command->acl_error;
    }
    free(command);
    return status;
}
