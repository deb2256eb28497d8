#include "control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "back_off.h"
#include "bell.h"
#include "command.h"
#include "departure.h"
#include "residents.h"
#include "subscription.h"

/* Until models are subscribed again. */
struct wait {
    uint64_t end_ns; /* UINT64_MAX: none wait */
    struct back_off back_off;
};

enum stage { STAGE_RUNNING, STAGE_LEAVING, STAGE_LEFT, STAGE_STOPPING };

struct control {
    struct reader *reader;
    struct link *link;
    pthread_t thread;

    pthread_mutex_t mutex; /* of the next five */
    pthread_cond_t changed;
    struct command_queue queue;
    unsigned suspensions; /* that have not been taken back */
    enum stage stage;
    struct bell wake;

    /* the thread's own */
    struct subscriptions *subscriptions;
    bool exit_registered;
    bool suspended; /* paused for the application, whatever else for */
    struct wait pressed, failed;
};

/* After subscriptions have come or gone. */
static void settle(struct control *control) {
    bool any = subscriptions_any(control->subscriptions);
    departure_set_subscribed(any);
    if (any && !control->exit_registered) {
        control->exit_registered = true;
        departure_register();
    }
}

static int obey(struct control *control, struct command *command) {
    int status = OPSTREAM_OK;
    switch (command->kind) {
    case COMMAND_SUBSCRIBE:
        departure_set_subscribed(true); /* before the vendor's threads are there */
        status = subscriptions_add(control->subscriptions, command->model_id, command->device, command->name, &command->acl_error);
        break;
    case COMMAND_UNSUBSCRIBE:
        status = subscriptions_remove(control->subscriptions, command->model_id, &command->acl_error);
        break;
    case COMMAND_UNSUBSCRIBE_ALL:
        subscriptions_remove_all(control->subscriptions);
        break;
    case COMMAND_SUSPEND:
        subscriptions_pause(control->subscriptions);
        control->suspended = true;
        break;
    }
    settle(control);
    return status;
}

static void leave(struct control *control) {
    subscriptions_remove_all(control->subscriptions);
    departure_set_subscribed(false);
    control->pressed.end_ns = control->failed.end_ns = UINT64_MAX;
    if (control->link) {
        link_goodbye(control->link);
    }
}

/* Does what it is asked for; returns the stage that this has led to. */
static enum stage obey_all(struct control *control) {
    pthread_mutex_lock(&control->mutex);
    for (struct command *command; (command = command_take(&control->queue)) != NULL;) {
        int status = OPSTREAM_E_STATE;
        if (control->stage == STAGE_RUNNING) {
            pthread_mutex_unlock(&control->mutex);
            status = obey(control, command);
            pthread_mutex_lock(&control->mutex);
        }
        command_done(command, status, &control->changed);
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

static bool is_suspended(struct control *control) {
    pthread_mutex_lock(&control->mutex);
    bool suspended = control->suspensions > 0;
    pthread_mutex_unlock(&control->mutex);
    return suspended;
}

/* The application has had the vendor to itself until it took the last suspension back. */
static void end_suspension(struct control *control) {
    if (control->suspended && !is_suspended(control)) {
        control->suspended = false;
        control->pressed.end_ns = 0;
    }
}

static void begin(struct wait *wait) {
    wait->end_ns = back_off_begin(&wait->back_off, clock_monotonic_ns());
}

static void end(struct wait *wait) {
    if (wait->end_ns != UINT64_MAX) {
        back_off_end(&wait->back_off, clock_monotonic_ns());
        wait->end_ns = UINT64_MAX;
    }
}

static void resume(struct control *control) {
    departure_set_subscribed(true);
    subscriptions_resume(control->subscriptions);
    settle(control);
    reader_pressure(control->reader); /* of the earlier pipes, when the reader had still to read what was left in them */
    end(&control->pressed);
    end(&control->failed);
}

/* When what is off is to come back. */
static uint64_t resume_ns(const struct control *control) {
    return control->suspended ? UINT64_MAX : control->pressed.end_ns != UINT64_MAX ? control->pressed.end_ns : control->failed.end_ns;
}

/* When the pipes fill, all pause; when their time is over they come back, and so does what could not be subscribed. */
static void relieve(struct control *control) {
    if (reader_pressure(control->reader) && subscriptions_any(control->subscriptions)) {
        subscriptions_pause(control->subscriptions);
        departure_set_subscribed(false);
        begin(&control->pressed);
    }
    end_suspension(control);
    if (clock_monotonic_ns() >= resume_ns(control)) {
        resume(control);
    }
    if (control->failed.end_ns == UINT64_MAX && subscriptions_any_failed(control->subscriptions)) {
        begin(&control->failed);
    }
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
    uint64_t deadline_ns = earlier(now_ns + CLOCK_SECOND_NS, resume_ns(control));
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

/* As the C library does when the last thread ends. */
static _Noreturn void end_process(struct control *control) {
    sigset_t none;
    leave(control);
    pthread_mutex_lock(&control->mutex);
    control->stage = STAGE_LEFT; /* the exit handler has nothing to wait for */
    pthread_mutex_unlock(&control->mutex);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    exit(0);
}

static void *run(void *argument) {
    struct control *control = argument;
    pthread_setname_np(pthread_self(), RESIDENTS_OURS "ctl");
    bool alone = false;
    while (obey_all(control) != STAGE_STOPPING) {
        subscriptions_check(control->subscriptions);
        relieve(control);
        if (control->link) {
            link_step(control->link, clock_monotonic_ns());
        }
        wait_for_work(control);
        bool was_alone = alone;
        alone = residents_are_ours();
        if (alone && was_alone) {
            end_process(control);
        }
    }
    leave(control);
    return NULL;
}

/* What exists, of one whose thread doesn't run. */
static void dismantle(struct control *control) {
    command_queue_close(&control->queue, &control->changed);
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
    command_queue_init(&control->queue);
    control->pressed.end_ns = control->failed.end_ns = UINT64_MAX;
    return control;
}

int control_start(const char *library_path, struct vendor *vendor, struct segment_writer *writer, struct reader *reader, struct link *link,
                  struct control **ret_control) {
    struct control *control = assemble(reader, link);
    if (!control) {
        return OPSTREAM_E_MEMORY;
    }
    int status = bell_make(&control->wake);
    if (status == OPSTREAM_OK) {
        status = subscriptions_new(library_path, vendor, writer, reader, &control->subscriptions);
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

/* With the mutex held; lets it go. */
static int ask(struct control *control, const struct command *wanted, uint64_t wait_ns, int *ret_acl_error) {
    int status = OPSTREAM_E_MEMORY;
    struct command *command = malloc(sizeof *command);
    if (command) {
        *command = *wanted;
        command_put(&control->queue, command);
        bell_ring(&control->wake);
        status = command_wait(command, wait_ns, &control->mutex, &control->changed, ret_acl_error);
    }
    pthread_mutex_unlock(&control->mutex);
    return status;
}

int control_subscribe(struct control *control, uint32_t model_id, uint32_t device, const char *name, uint64_t wait_ns, int *ret_acl_error) {
    struct command command = {.kind = COMMAND_SUBSCRIBE, .model_id = model_id, .device = device};
    strcpy(command.name, name); /* fits: as opstream_publisher_subscribe says */
    pthread_mutex_lock(&control->mutex);
    return ask(control, &command, wait_ns, ret_acl_error);
}

int control_unsubscribe(struct control *control, uint32_t model_id, uint64_t wait_ns, int *ret_acl_error) {
    struct command command = {.kind = COMMAND_UNSUBSCRIBE, .model_id = model_id};
    pthread_mutex_lock(&control->mutex);
    if (command_cancel(&control->queue, model_id, &control->changed)) {
        pthread_mutex_unlock(&control->mutex);
        return OPSTREAM_OK;
    }
    return ask(control, &command, wait_ns, ret_acl_error);
}

int control_unsubscribe_all(struct control *control, uint64_t wait_ns) {
    pthread_mutex_lock(&control->mutex);
    return ask(control, &(struct command){.kind = COMMAND_UNSUBSCRIBE_ALL}, wait_ns, NULL);
}

int control_suspend(struct control *control, uint64_t wait_ns) {
    pthread_mutex_lock(&control->mutex);
    control->suspensions++;
    return ask(control, &(struct command){.kind = COMMAND_SUSPEND}, wait_ns, NULL);
}

int control_restore(struct control *control) {
    pthread_mutex_lock(&control->mutex);
    int status = control->suspensions > 0 ? OPSTREAM_OK : OPSTREAM_E_STATE;
    if (status == OPSTREAM_OK && --control->suspensions == 0) {
        bell_ring(&control->wake);
    }
    pthread_mutex_unlock(&control->mutex);
    return status;
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
