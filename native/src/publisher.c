#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "departure.h"
#include "descriptor.h"
#include "device_pipe.h"
#include "link.h"
#include "reader.h"
#include "subscription.h"

#define SERIES_DEFAULT 8192u
#define SERIES_MIN 64u
#define SERIES_MAX 65536u
#define MODEL_NAME_BYTES 255u
#define BACK_OFF_MIN_NS CLOCK_SECOND_NS
#define BACK_OFF_MAX_NS (60 * CLOCK_SECOND_NS)
#define LEAVE_SECONDS 1                /* what exit() waits for at most */

/* What the control thread is asked for. On the stack of the caller, who waits. */
struct command {
    struct command *next;
    bool subscribe;                    /* else unsubscribe */
    uint32_t model_id, device;
    const char *name;
    int status, acl_error;
    bool done;
};

enum stage { STAGE_RUNNING, STAGE_LEAVING /* exit() has been called */, STAGE_LEFT, STAGE_CLOSING };

struct opstream_publisher {
    struct vendor vendor;
    struct segment_writer writer;
    struct reader *reader;
    struct link *link;                 /* NULL: never connects */
    int wake_fd, stop_fd;
    pthread_t control;

    pthread_mutex_t mutex;             /* of the next three */
    pthread_cond_t changed;
    struct command *first, **last;
    enum stage stage;

    /* control thread */
    struct subscriptions *subscriptions;
    bool exit_registered, stop_told;
    uint64_t resume_ns;                /* when the paused models come back; UINT64_MAX: none are paused */
    uint64_t resumed_ns;
    uint64_t back_off_ns;
};

/* The process's publisher. The lock is held while it comes and goes, so that exit() meets a whole one or none. */
static pthread_mutex_t lifetime = PTHREAD_MUTEX_INITIALIZER;
static struct opstream_publisher *_Atomic present;

/* ---- Control thread --------------------------------------------------------------------------------------------------------------- */

static void obey(struct opstream_publisher *publisher, struct command *command) {
    if (!command->subscribe) {
        command->status = subscriptions_remove(publisher->subscriptions, command->model_id, &command->acl_error);
    } else {
        departure_set_subscribed(true); /* before the vendor's threads are there */
        command->status = subscriptions_add(publisher->subscriptions, command->model_id, command->device, command->name, &command->acl_error);
        if (command->status == OPSTREAM_OK && !publisher->exit_registered) {
            publisher->exit_registered = true;
            departure_register();
        }
    }
    departure_set_subscribed(subscriptions_any(publisher->subscriptions));
}

static void leave(struct opstream_publisher *publisher) {
    subscriptions_remove_all(publisher->subscriptions);
    departure_set_subscribed(false);
    publisher->resume_ns = UINT64_MAX;
    if (publisher->link) {
        link_goodbye(publisher->link);
    }
}

/* Does what it is asked for; returns the stage that this has led to. */
static enum stage obey_all(struct opstream_publisher *publisher) {
    pthread_mutex_lock(&publisher->mutex);
    while (publisher->first) {
        struct command *command = publisher->first;
        publisher->first = command->next;
        if (!publisher->first) {
            publisher->last = &publisher->first;
        }
        command->status = OPSTREAM_E_STATE;
        if (publisher->stage == STAGE_RUNNING) {
            pthread_mutex_unlock(&publisher->mutex);
            obey(publisher, command);
            pthread_mutex_lock(&publisher->mutex);
        }
        command->done = true;
        pthread_cond_broadcast(&publisher->changed);
    }
    enum stage stage = publisher->stage;
    pthread_mutex_unlock(&publisher->mutex);
    if (stage == STAGE_LEAVING) {
        leave(publisher);
        pthread_mutex_lock(&publisher->mutex);
        if (publisher->stage == STAGE_LEAVING) {
            publisher->stage = STAGE_LEFT;
        }
        stage = publisher->stage;
        pthread_cond_broadcast(&publisher->changed);
        pthread_mutex_unlock(&publisher->mutex);
    }
    return stage;
}

/* The first pause of a bad time is a second long, each further one twice the last. */
static void back_off(struct opstream_publisher *publisher, uint64_t now_ns) {
    bool calm = now_ns - publisher->resumed_ns > BACK_OFF_MAX_NS;
    uint64_t next_ns = 2 * publisher->back_off_ns;
    publisher->back_off_ns = calm ? BACK_OFF_MIN_NS : next_ns < BACK_OFF_MAX_NS ? next_ns : BACK_OFF_MAX_NS;
    publisher->resume_ns = now_ns + publisher->back_off_ns;
}

static void relieve(struct opstream_publisher *publisher) {
    if (reader_pressure(publisher->reader) && subscriptions_any(publisher->subscriptions)) {
        subscriptions_pause(publisher->subscriptions);
        departure_set_subscribed(false);
        back_off(publisher, clock_monotonic_ns());
    }
    if (clock_monotonic_ns() < publisher->resume_ns) {
        return;
    }
    departure_set_subscribed(true);
    int status = subscriptions_resume(publisher->subscriptions);
    departure_set_subscribed(subscriptions_any(publisher->subscriptions));
    publisher->resumed_ns = clock_monotonic_ns();
    publisher->resume_ns = UINT64_MAX;
    if (status != OPSTREAM_OK) {
        back_off(publisher, publisher->resumed_ns);
    }
}

static void talk(struct opstream_publisher *publisher) {
    if (!publisher->link) {
        return;
    }
    link_step(publisher->link, clock_monotonic_ns());
    if (link_stop_asked(publisher->link) && !publisher->stop_told) {
        publisher->stop_told = true;
        eventfd_write(publisher->stop_fd, 1);
    }
}

/* Until something is to be done. */
static void wait_for_work(struct opstream_publisher *publisher) {
    struct pollfd fds[] = {
        {.fd = publisher->wake_fd, .events = POLLIN},
        {.fd = reader_pressure_fd(publisher->reader), .events = POLLIN},
        {.fd = -1},
    };
    uint64_t deadline_ns = publisher->resume_ns;
    if (publisher->link) {
        uint64_t link_deadline_ns;
        link_wants(publisher->link, &fds[2].fd, &fds[2].events, &link_deadline_ns);
        deadline_ns = link_deadline_ns < deadline_ns ? link_deadline_ns : deadline_ns;
    }
    uint64_t now_ns = clock_monotonic_ns();
    int timeout_ms = -1;
    if (deadline_ns != UINT64_MAX) {
        timeout_ms = deadline_ns > now_ns ? (int)((deadline_ns - now_ns) / 1000000 + 1) : 0;
    }
    eventfd_t unused;
    if (poll(fds, 3, timeout_ms) > 0 && fds[0].revents & POLLIN) {
        eventfd_read(publisher->wake_fd, &unused);
    }
}

static void *control(void *argument) {
    struct opstream_publisher *publisher = argument;
    while (obey_all(publisher) != STAGE_CLOSING) {
        relieve(publisher);
        talk(publisher);
        wait_for_work(publisher);
    }
    leave(publisher);
    subscriptions_free(publisher->subscriptions);
    reader_stop(publisher->reader);
    return NULL;
}

/* ---- Exit and fork ---------------------------------------------------------------------------------------------------------------- */

static struct timespec seconds_from_now(clockid_t clock, time_t seconds) {
    struct timespec deadline;
    clock_gettime(clock, &deadline);
    deadline.tv_sec += seconds;
    return deadline;
}

/* In exit(). */
static void leave_process(void) {
    struct timespec locked_until = seconds_from_now(CLOCK_REALTIME, LEAVE_SECONDS);
    if (pthread_mutex_timedlock(&lifetime, &locked_until) != 0) {
        return;
    }
    struct opstream_publisher *publisher = atomic_load(&present);
    if (publisher) {
        struct timespec left_until = seconds_from_now(CLOCK_MONOTONIC, LEAVE_SECONDS);
        pthread_mutex_lock(&publisher->mutex);
        if (publisher->stage == STAGE_RUNNING) {
            publisher->stage = STAGE_LEAVING;
            eventfd_write(publisher->wake_fd, 1);
        }
        while (publisher->stage == STAGE_LEAVING && pthread_cond_timedwait(&publisher->changed, &publisher->mutex, &left_until) != ETIMEDOUT) {
        }
        pthread_mutex_unlock(&publisher->mutex);
        reader_drain_only(publisher->reader);
    }
    pthread_mutex_unlock(&lifetime);
}

/* In a forked child, which has neither our threads nor the segment: the parent's publisher is none of its own. */
static void forget_publisher(void) {
    atomic_store(&present, NULL);
    pthread_mutex_init(&lifetime, NULL);
}

static void register_again(void *unused) {
    (void)unused;
    departure_register();
}

/* ---- What opstream.h says ----------------------------------------------------------------------------------------------------------- */

static bool fits(const char *text, size_t bytes) {
    return !text || strlen(text) <= bytes;
}

static bool valid(const struct opstream_publisher_config *config) {
    bool hosted = config->kind == OPSTREAM_KIND_HOSTED;
    return (hosted || config->kind == OPSTREAM_KIND_AGENT)
        && (config->series_capacity == 0 || (config->series_capacity >= SERIES_MIN && config->series_capacity <= SERIES_MAX))
        && config->app && fits(config->app, 127) && fits(config->labels, 511)
        && fits(config->hosted_name, 63) && fits(config->config_digest, 32)
        && (hosted || (!config->hosted_name && !config->config_digest));
}

static void copy_text(char *to, const char *text) {
    if (text) {
        strcpy(to, text); /* fits: see valid() */
    }
}

static int start_control(struct opstream_publisher *publisher) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&publisher->control, NULL, control, publisher);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        errno = error;
        return OPSTREAM_E_SYSTEM;
    }
    return OPSTREAM_OK;
}

static int make_descriptors(struct opstream_publisher *publisher) {
    publisher->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    publisher->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (publisher->wake_fd < 0 || publisher->stop_fd < 0) {
        return OPSTREAM_E_SYSTEM;
    }
    publisher->wake_fd = descriptor_raise(publisher->wake_fd);
    publisher->stop_fd = descriptor_raise(publisher->stop_fd);
    return OPSTREAM_OK;
}

static void make_locks(struct opstream_publisher *publisher) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&publisher->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&publisher->mutex, NULL);
    publisher->last = &publisher->first;
}

static int fill(struct opstream_publisher *publisher, const struct opstream_publisher_config *config) {
    struct vendor_library library;
    int status = vendor_library_open(config->library_path, NULL, 0, &library);
    if (status == OPSTREAM_OK) {
        status = vendor_load(&library, NULL, 0, &publisher->vendor);
    }
    if (status == OPSTREAM_OK) {
        status = make_descriptors(publisher);
    }
    if (status != OPSTREAM_OK) {
        return status;
    }
    struct segment_identity identity = {.kind = config->kind};
    copy_text(identity.app, config->app);
    copy_text(identity.labels, config->labels);
    copy_text(identity.hosted_name, config->hosted_name);
    copy_text(identity.config_digest, config->config_digest);
    status = segment_create(&identity, config->series_capacity ? config->series_capacity : SERIES_DEFAULT, &publisher->writer);
    if (status == OPSTREAM_OK && config->socket_path) {
        status = link_new(config->socket_path, config->daemon_uid, &publisher->writer, &publisher->link);
    }
    if (status == OPSTREAM_OK) {
        status = reader_start(&publisher->vendor, &publisher->writer, &publisher->reader);
    }
    if (status == OPSTREAM_OK) {
        reader_on_first_record(publisher->reader, register_again, NULL);
        status = subscriptions_new(&publisher->vendor, &publisher->writer, publisher->reader, &publisher->subscriptions);
    }
    return status == OPSTREAM_OK ? start_control(publisher) : status;
}

/* What is left when the threads have ended. */
static void empty(struct opstream_publisher *publisher) {
    link_free(publisher->link);
    segment_free(&publisher->writer);
    if (publisher->wake_fd >= 0) {
        close(publisher->wake_fd);
    }
    if (publisher->stop_fd >= 0) {
        close(publisher->stop_fd);
    }
    pthread_cond_destroy(&publisher->changed);
    pthread_mutex_destroy(&publisher->mutex);
    free(publisher);
}

static int open_first(const struct opstream_publisher_config *config, opstream_publisher **ret_publisher) {
    if (atomic_load(&present)) {
        return OPSTREAM_E_BUSY;
    }
    struct opstream_publisher *publisher = calloc(1, sizeof *publisher);
    if (!publisher) {
        return OPSTREAM_E_MEMORY;
    }
    publisher->wake_fd = publisher->stop_fd = publisher->writer.fd = -1;
    publisher->resume_ns = UINT64_MAX;
    make_locks(publisher);
    int status = fill(publisher, config);
    if (status != OPSTREAM_OK) {
        subscriptions_free(publisher->subscriptions);
        reader_stop(publisher->reader);
        empty(publisher);
        return status;
    }
    departure_prepare(leave_process, forget_publisher);
    atomic_store(&present, publisher);
    *ret_publisher = publisher;
    return OPSTREAM_OK;
}

int opstream_publisher_open(const struct opstream_publisher_config *config, opstream_publisher **ret_publisher) {
    if (!valid(config)) {
        return OPSTREAM_E_INVALID;
    }
    pthread_mutex_lock(&lifetime);
    int status = open_first(config, ret_publisher);
    pthread_mutex_unlock(&lifetime);
    return status;
}

static int ask(struct opstream_publisher *publisher, struct command *command, int *ret_acl_error) {
    if (publisher != atomic_load(&present)) { /* in a forked child: nobody would answer */
        return OPSTREAM_E_STATE;
    }
    pthread_mutex_lock(&publisher->mutex);
    *publisher->last = command;
    publisher->last = &command->next;
    eventfd_write(publisher->wake_fd, 1);
    while (!command->done) {
        pthread_cond_wait(&publisher->changed, &publisher->mutex);
    }
    pthread_mutex_unlock(&publisher->mutex);
    if (command->status == OPSTREAM_E_VENDOR) {
        *ret_acl_error = command->acl_error;
    }
    return command->status;
}

int opstream_publisher_subscribe(opstream_publisher *publisher, uint32_t model_id, uint32_t device, const char *name, int *ret_acl_error) {
    if (device >= DEVICES_MAX || strlen(name) > MODEL_NAME_BYTES) {
        return OPSTREAM_E_INVALID;
    }
    struct command command = {.subscribe = true, .model_id = model_id, .device = device, .name = name};
    return ask(publisher, &command, ret_acl_error);
}

int opstream_publisher_unsubscribe(opstream_publisher *publisher, uint32_t model_id, int *ret_acl_error) {
    struct command command = {.subscribe = false, .model_id = model_id};
    return ask(publisher, &command, ret_acl_error);
}

int opstream_publisher_segment(opstream_publisher *publisher) {
    int fd = fcntl(publisher->writer.fd, F_DUPFD_CLOEXEC, 0);
    return fd >= 0 ? fd : OPSTREAM_E_SYSTEM;
}

int opstream_publisher_stop_fd(const opstream_publisher *publisher) {
    return publisher->stop_fd;
}

int opstream_publisher_link_state(const opstream_publisher *publisher) {
    return publisher->link ? link_state(publisher->link) : OPSTREAM_LINK_DOWN;
}

void opstream_publisher_close(opstream_publisher *publisher) {
    pthread_mutex_lock(&lifetime);
    if (publisher && publisher == atomic_load(&present)) {
        pthread_mutex_lock(&publisher->mutex);
        publisher->stage = STAGE_CLOSING;
        eventfd_write(publisher->wake_fd, 1);
        pthread_mutex_unlock(&publisher->mutex);
        pthread_join(publisher->control, NULL);
        atomic_store(&present, NULL);
        empty(publisher);
    }
    pthread_mutex_unlock(&lifetime);
}
