#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control.h"
#include "departure.h"
#include "device_pipe.h"
#include "link.h"
#include "reader.h"

#define SERIES_DEFAULT 8192u
#define MODEL_NAME_BYTES 255u
#define LEAVE_SECONDS 1

struct opstream_publisher {
    struct vendor vendor;
    struct segment_writer writer;
    struct reader *reader;
    struct link *link; /* NULL: never connects */
    struct control *control;
};

/* The process's publisher. The lock is held while it comes and goes, so that exit() meets a whole one or none. */
static pthread_mutex_t lifetime = PTHREAD_MUTEX_INITIALIZER;
static struct opstream_publisher *_Atomic present;

/* In exit(). */
static void leave_process(void) {
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += LEAVE_SECONDS;
    if (pthread_mutex_timedlock(&lifetime, &deadline) != 0) {
        return;
    }
    struct opstream_publisher *publisher = atomic_load(&present);
    if (publisher) {
        control_leave(publisher->control);
        reader_drain_only(publisher->reader);
    }
    pthread_mutex_unlock(&lifetime);
}

/* In a forked child, which has neither our threads nor the segment: the parent's publisher is none of its own, nor are its pipes. */
static void forget_publisher(void) {
    atomic_store(&present, NULL);
    device_pipes_close();
    pthread_mutex_init(&lifetime, NULL);
}

static void register_again(void *unused) {
    (void)unused;
    departure_register_last();
}

static bool fits(const char *text, size_t bytes) {
    return !text || strlen(text) <= bytes;
}

static bool valid(const struct opstream_publisher_config *config) {
    bool hosted = config->kind == OPSTREAM_KIND_HOSTED;
    return (hosted || config->kind == OPSTREAM_KIND_AGENT) &&
           (config->series_capacity == 0 ||
            (config->series_capacity >= SERIES_CAPACITY_MIN && config->series_capacity <= SERIES_CAPACITY_MAX)) &&
           config->app && fits(config->app, 127) && fits(config->labels, 511) && fits(config->hosted_name, 63) &&
           fits(config->config_digest, 32) && (hosted || (!config->hosted_name && !config->config_digest));
}

static void copy_text(char *to, const char *text) {
    if (text) {
        strcpy(to, text); /* fits: see valid() */
    }
}

static int fill(struct opstream_publisher *publisher, const struct opstream_publisher_config *config) {
    struct segment_identity identity = {.kind = config->kind};
    copy_text(identity.app, config->app);
    copy_text(identity.labels, config->labels);
    copy_text(identity.hosted_name, config->hosted_name);
    copy_text(identity.config_digest, config->config_digest);
    int status = segment_create(&identity, config->series_capacity ? config->series_capacity : SERIES_DEFAULT, &publisher->writer);
    if (status == OPSTREAM_OK && config->socket_path) {
        status = link_new(config->socket_path, config->daemon_uid, &publisher->writer, &publisher->link);
    }
    if (status == OPSTREAM_OK) {
        status = reader_start(&publisher->vendor, &publisher->writer, &publisher->reader);
    }
    if (status == OPSTREAM_OK) {
        reader_on_first_record(publisher->reader, register_again, NULL);
        status = control_start(config->library_path, &publisher->vendor, &publisher->writer, publisher->reader, publisher->link,
                               &publisher->control);
    }
    return status;
}

static void empty(struct opstream_publisher *publisher) {
    control_stop(publisher->control);
    link_free(publisher->link);
    reader_stop(publisher->reader);
    segment_free(&publisher->writer);
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
    publisher->writer.fd = -1;
    int status = fill(publisher, config);
    if (status != OPSTREAM_OK) {
        empty(publisher);
        return status;
    }
    atomic_store(&present, publisher);
    *ret_publisher = publisher;
    return OPSTREAM_OK;
}

int opstream_publisher_open(const struct opstream_publisher_config *config, opstream_publisher **ret_publisher) {
    if (!valid(config)) {
        return OPSTREAM_E_INVALID;
    }
    departure_prepare(leave_process, forget_publisher); /* before the lock, which a child forked from now on makes anew */
    pthread_mutex_lock(&lifetime);
    int status = open_first(config, ret_publisher);
    pthread_mutex_unlock(&lifetime);
    return status;
}

/* A forked child has its parent's publisher without its threads: nobody would answer. */
static bool answers(const struct opstream_publisher *publisher) {
    return publisher == atomic_load(&present);
}

int opstream_publisher_subscribe(opstream_publisher *publisher, uint32_t model_id, uint32_t device, const char *name, uint64_t wait_ns,
                                 int *ret_acl_error) {
    if (device >= DEVICES_MAX || strlen(name) > MODEL_NAME_BYTES) {
        return OPSTREAM_E_INVALID;
    }
    return answers(publisher) ? control_subscribe(publisher->control, model_id, device, name, wait_ns, ret_acl_error) : OPSTREAM_E_STATE;
}

int opstream_publisher_unsubscribe(opstream_publisher *publisher, uint32_t model_id, uint64_t wait_ns, int *ret_acl_error) {
    return answers(publisher) ? control_unsubscribe(publisher->control, model_id, wait_ns, ret_acl_error) : OPSTREAM_E_STATE;
}

int opstream_publisher_unsubscribe_all(opstream_publisher *publisher, uint64_t wait_ns) {
    return answers(publisher) ? control_unsubscribe_all(publisher->control, wait_ns) : OPSTREAM_E_STATE;
}

int opstream_publisher_suspend(opstream_publisher *publisher, uint64_t wait_ns) {
    return answers(publisher) ? control_suspend(publisher->control, wait_ns) : OPSTREAM_E_STATE;
}

int opstream_publisher_restore(opstream_publisher *publisher) {
    return answers(publisher) ? control_restore(publisher->control) : OPSTREAM_E_STATE;
}

int opstream_publisher_segment(opstream_publisher *publisher) {
    int fd = segment_descriptor(&publisher->writer);
    fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    return fd >= 0 ? fd : OPSTREAM_E_SYSTEM;
}

int opstream_publisher_link_state(const opstream_publisher *publisher) {
    return publisher->link ? link_state(publisher->link) : OPSTREAM_LINK_DOWN;
}

void opstream_publisher_close(opstream_publisher *publisher) {
    pthread_mutex_lock(&lifetime);
    if (publisher && answers(publisher)) {
        empty(publisher);
        atomic_store(&present, NULL);
    }
    pthread_mutex_unlock(&lifetime);
}
