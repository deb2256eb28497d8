#include "control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "back_off.h"
#include "bell.h"
#include "departure.h"
#include "subscription.h"

/* What the thread is asked for. On the stack of the caller, who waits. */
struct command {
    struct command *next;
    bool subscribe; /* else unsubscribe */
    uint32_t model_id, device;
    const char *name;
    int status, acl_error;
    bool done;
};

enum stage { STAGE_RUNNING, STAGE_LEAVING, STAGE_LEFT, STAGE_STOPPING };

struct control {
    struct reader *reader;
    struct link *link;
    pthread_t thread;

    pthread_mutex_t mutex; /* of the next four */
    pthread_cond_t changed;
    struct command *first, **last;
    enum stage stage;
    struct bell wake;

    /* the thread's own */
    struct subscriptions *subscriptions;
    bool exit_registered;
    uint64_t resume_ns; /* when the paused models come back; UINT64_MAX: none are paused */
    struct back_off back_off;
};

static void obey(struct control *control, struct command *command) {
    if (!command->subscribe) {
        command->status = subscriptions_remove(control->subscriptions, command->model_id, &command->acl_error);
    } else {
        departure_set_subscribed(true); /* before the vendor's threads are there */
        command->status = subscriptions_add(control->subscriptions, command->model_id, command->device, command->name, &command->acl_error);
        if (command->status == OPSTREAM_OK && !control->exit_registered) {
            control->exit_registered = true;
            departure_register();
        }
    }
    departure_set_subscribed(subscriptions_any(control->subscriptions));
}

static void leave(struct control *control) {
    subscriptions_remove_all(control->subscriptions);
    departure_set_subscribed(false);
    control->resume_ns = UINT64_MAX;
    if (control->link) {
        link_goodbye(control->link);
    }
}

/* Does what it is asked for; returns the stage that this has led to. */
static enum stage obey_all(struct control *control) {
    pthread_mutex_lock(&control->mutex);
    while (control->first) {
        struct command *command = control->first;
        control->first = command->next;
        if (!control->first) {
            control->last = &control->first;
        }
        command->status = OPSTREAM_E_STATE;
        if (control->stage == STAGE_RUNNING) {
            pthread_mutex_unlock(&control->mutex);
            obey(control, command);
            pthread_mutex_lock(&control->mutex);
        }
        command->done = true;
        pthread_cond_broadcast(&control->changed);
    }
    enum stage stage = control->stage;
    pthread_mutex_unlock(&control->mutex);
    if (stage == STAGE_LEAVING) {
        leave(control);
        pthread_mutex_lock(&control->mutex);
        if (control->stage == STAGE_LEAVING) {
            control->stage = STAGE_LEFT;
        }
        stage = control->stage;
        pthread_cond_broadcast(&control->changed);
        pthread_mutex_unlock(&control->mutex);
    }
    return stage;
}

static void relieve(struct control *control) {
    if (reader_pressure(control->reader) && subscriptions_any(control->subscriptions)) {
        subscriptions_pause(control->subscriptions);
        departure_set_subscribed(false);
        control->resume_ns = back_off_begin(&control->back_off, clock_monotonic_ns());
    }
    if (clock_monotonic_ns() < control->resume_ns) {
        return;
    }
    departure_set_subscribed(true);
    int status = subscriptions_resume(control->subscriptions);
    departure_set_subscribed(subscriptions_any(control->subscriptions));
    reader_pressure(control->reader); /* of the earlier pipes, when the reader had still to read what was left in them */
    uint64_t now_ns = clock_monotonic_ns();
    back_off_end(&control->back_off, now_ns);
    control->resume_ns = status == OPSTREAM_OK ? UINT64_MAX : back_off_begin(&control->back_off, now_ns);
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns) {
    return a_ns < b_ns ? a_ns : b_ns;
}

/* The application may have closed even what wakes us. */
static int wake_fd(struct control *control) {
    if (bell_fd(&control->wake) < 0) {
        pthread_mutex_lock(&control->mutex);
        bell_close(&control->wake);
        bell_make(&control->wake);
        pthread_mutex_unlock(&control->mutex);
    }
    return bell_fd(&control->wake);
}

/* Until something is to be done, or a second: it could be closed right now. */
static void wait_for_work(struct control *control) {
    struct pollfd fds[] = {
        {.fd = wake_fd(control), .events = POLLIN},
        {.fd = reader_pressure_fd(control->reader), .events = POLLIN},
        {.fd = -1},
    };
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t deadline_ns = earlier(now_ns + CLOCK_SECOND_NS, control->resume_ns);
    if (control->link) {
        uint64_t link_deadline_ns;
        link_wants(control->link, &fds[2].fd, &fds[2].events, &link_deadline_ns);
        deadline_ns = earlier(deadline_ns, link_deadline_ns);
    }
    int timeout_ms = deadline_ns > now_ns ? (int)((deadline_ns - now_ns) / 1000000 + 1) : 0;
    if (poll(fds, 3, timeout_ms) <= 0) {
        return;
    }
    if (fds[0].revents & POLLIN) {
        bell_silence(&control->wake);
    }
}

static void *run(void *argument) {
    struct control *control = argument;
    pthread_setname_np(pthread_self(), "opstream-control");
    while (obey_all(control) != STAGE_STOPPING) {
        subscriptions_check(control->subscriptions);
        relieve(control);
        if (control->link) {
            link_step(control->link, clock_monotonic_ns());
        }
        wait_for_work(control);
    }
    leave(control);
    return NULL;
}

/* What exists, of one whose thread doesn't run. */
static void dismantle(struct control *control) {
    subscriptions_free(control->subscriptions);
    bell_close(&control->wake);
    pthread_cond_destroy(&control->changed);
    pthread_mutex_destroy(&control->mutex);
    free(control);
}

static int start_thread(struct control *control) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&control->thread, NULL, run, control);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        errno = error;
        return OPSTREAM_E_SYSTEM;
    }
    return OPSTREAM_OK;
}

static struct control *assemble(struct reader *reader, struct link *link) {
    struct control *control = calloc(1, sizeof *control);
    if (!control) {
        return NULL;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&control->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&control->mutex, NULL);
    control->reader = reader;
    control->link = link;
    control->last = &control->first;
    control->resume_ns = UINT64_MAX;
    return control;
}

int control_start(const struct vendor *vendor, struct segment_writer *writer, struct reader *reader, struct link *link,
                  struct control **ret_control) {
    struct control *control = assemble(reader, link);
    if (!control) {
        return OPSTREAM_E_MEMORY;
    }
    int status = bell_make(&control->wake);
    if (status == OPSTREAM_OK) {
        status = subscriptions_new(vendor, writer, reader, &control->subscriptions);
    }
    if (status == OPSTREAM_OK) {
        status = start_thread(control);
    }
    if (status != OPSTREAM_OK) {
        dismantle(control);
        return status;
    }
    *ret_control = control;
    return OPSTREAM_OK;
}

static int ask(struct control *control, struct command *command, int *ret_acl_error) {
    pthread_mutex_lock(&control->mutex);
    *control->last = command;
    control->last = &command->next;
    bell_ring(&control->wake);
    while (!command->done) {
        pthread_cond_wait(&control->changed, &control->mutex);
    }
    pthread_mutex_unlock(&control->mutex);
    if (command->status == OPSTREAM_E_VENDOR) {
        *ret_acl_error = command->acl_error;
    }
    return command->status;
}

int control_subscribe(struct control *control, uint32_t model_id, uint32_t device, const char *name, int *ret_acl_error) {
    struct command command = {.subscribe = true, .model_id = model_id, .device = device, .name = name};
    return ask(control, &command, ret_acl_error);
}

int control_unsubscribe(struct control *control, uint32_t model_id, int *ret_acl_error) {
    struct command command = {.subscribe = false, .model_id = model_id};
    return ask(control, &command, ret_acl_error);
}

void control_leave(struct control *control) {
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += 1;
    pthread_mutex_lock(&control->mutex);
    if (control->stage == STAGE_RUNNING) {
        control->stage = STAGE_LEAVING;
        bell_ring(&control->wake);
    }
    int error = 0;
    while (control->stage == STAGE_LEAVING && error == 0) {
        error = pthread_cond_timedwait(&control->changed, &control->mutex, &deadline);
    }
    pthread_mutex_unlock(&control->mutex);
}

void control_stop(struct control *control) {
    if (!control) {
        return;
    }
    pthread_mutex_lock(&control->mutex);
    control->stage = STAGE_STOPPING;
    bell_ring(&control->wake);
    pthread_mutex_unlock(&control->mutex);
    pthread_join(control->thread, NULL);
    dismantle(control);
}
