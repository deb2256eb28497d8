#include "agent.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "departure.h"
#include "log.h"
#include "real.h"
#include "settings.h"

#define OPENING_WAIT_S 1

static opstream_publisher *_Atomic present;
static atomic_bool initialised;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the next two, and of changes of `present`; held for moments */
static unsigned holds;
static atomic_bool told; /* that this child subscribes nothing */
static __thread unsigned forwarding __attribute__((tls_model("initial-exec")));

opstream_publisher *agent_publisher(void) {
    return atomic_load_explicit(&present, memory_order_acquire);
}

bool agent_initialised(void) {
    return atomic_load(&initialised);
}

void agent_set_initialised(bool now) {
    atomic_store(&initialised, now);
}

void agent_forward_begin(void) {
    forwarding++;
}

void agent_forward_end(void) {
    forwarding--;
}

/* ---- Visits ---- */

bool agent_visit_begin(struct agent_visit *ret_visit) {
    ret_visit->error = errno;
    ret_visit->counted = forwarding == 0 && !agent_settings()->disable;
    if (ret_visit->counted) {
        forwarding++; /* what we call ourselves isn't the application's */
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ret_visit->cancellation);
    }
    return ret_visit->counted;
}

void agent_visit_end(const struct agent_visit *visit) {
    if (visit->counted) {
        forwarding--;
        pthread_setcancelstate(visit->cancellation, NULL);
    }
    errno = visit->error;
}

/* ---- The publisher ---- */

/* The parent's publisher is none of the child's, and its other threads may have held the locks. */
static void on_fork(void) {
    atomic_store(&present, NULL);
    pthread_mutex_init(&mutex, NULL);
    pthread_mutex_init(&opening, NULL);
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, on_fork);
}

static void publish(opstream_publisher *publisher) {
    pthread_mutex_lock(&mutex);
    atomic_store_explicit(&present, publisher, memory_order_release);
    for (unsigned i = 0; i < holds; i++) {
        opstream_publisher_suspend(publisher, 0);
    }
    pthread_mutex_unlock(&mutex);
}

static opstream_publisher *open_publisher(void) {
    const struct settings *settings = agent_settings();
    const struct opstream_publisher_config config = {
        .kind = OPSTREAM_KIND_AGENT,
        .app = settings->app,
        .labels = settings->labels[0] ? settings->labels : NULL,
        .socket_path = settings->socket,
        .daemon_uid = settings->daemon_uid,
    };
    opstream_publisher *publisher;
    int status = opstream_publisher_open(&config, &publisher);
    if (status != OPSTREAM_OK) {
        agent_log("no publisher: %s; tried again at the next load", opstream_status_name(status));
        return NULL;
    }
    publish(publisher);
    if (settings->ignored[0]) {
        agent_log("ignored, as their values aren't understood: %s", settings->ignored);
    }
    agent_log("publishing as %s to %s", settings->app, settings->socket);
    return publisher;
}

opstream_publisher *agent_open(void) {
    opstream_publisher *publisher = agent_publisher();
    if (publisher || agent_settings()->disable) {
        return publisher;
    }
    if (departure_child_of_subscribed()) {
        if (!atomic_exchange(&told, true)) {
            agent_log("nothing is subscribed here: forked from a subscribed process, whose vendor's threads this one doesn't have");
        }
        return NULL;
    }
    pthread_once(&once, watch_forks);
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += OPENING_WAIT_S;
    if (pthread_mutex_timedlock(&opening, &deadline) != 0) {
        return agent_publisher();
    }
    publisher = agent_publisher();
    publisher = publisher ? publisher : open_publisher();
    pthread_mutex_unlock(&opening);
    return publisher;
}

/* ---- Models ---- */

static uint32_t current_device(void) {
    int32_t device = 0;
    real_aclrtGetDevice_function get_device = REAL(aclrtGetDevice);
    return get_device && get_device(&device) == 0 && device >= 0 ? (uint32_t)device : 0;
}

int agent_subscribe(opstream_publisher *publisher, uint32_t model_id, uint32_t device, const char *name, int *ret_acl_error) {
    int status = opstream_publisher_subscribe(publisher, model_id, device, name, AGENT_LOAD_WAIT_NS, ret_acl_error);
    if (status == OPSTREAM_E_STATE) {
        int unused;
        opstream_publisher_unsubscribe(publisher, model_id, AGENT_LEAVE_WAIT_NS, &unused);
        status = opstream_publisher_subscribe(publisher, model_id, device, name, AGENT_LOAD_WAIT_NS, ret_acl_error);
    }
    return status;
}

void agent_loaded(uint32_t model_id, const char *name) {
    agent_set_initialised(true);
    opstream_publisher *publisher = agent_open();
    if (!publisher) {
        return;
    }
    uint32_t device = current_device();
    int acl_error = 0;
    int status = agent_subscribe(publisher, model_id, device, name, &acl_error);
    if (status == OPSTREAM_OK) {
        agent_log("model %u on device %u is subscribed as %s", model_id, device, name);
    } else if (status == OPSTREAM_E_BUSY) {
        agent_log("model %u on device %u, %s: will be subscribed later", model_id, device, name);
    } else {
        agent_log("model %u on device %u, %s: not subscribed: %s %d %s", model_id, device, name, opstream_status_name(status), acl_error,
                  opstream_acl_error_name(acl_error));
    }
}

void agent_unloading(uint32_t model_id) {
    opstream_publisher *publisher = agent_publisher();
    int acl_error = 0, status = OPSTREAM_OK;
    if (publisher) {
        status = opstream_publisher_unsubscribe(publisher, model_id, AGENT_LEAVE_WAIT_NS, &acl_error);
    }
    if (status != OPSTREAM_OK && status != OPSTREAM_E_STATE) {
        agent_log("model %u: unsubscribing: %s %d", model_id, opstream_status_name(status), acl_error);
    }
}

/* ---- Standing aside ---- */

void agent_hold(void) {
    pthread_mutex_lock(&mutex);
    holds++;
    opstream_publisher *publisher = agent_publisher();
    pthread_mutex_unlock(&mutex);
    if (publisher && opstream_publisher_suspend(publisher, AGENT_LEAVE_WAIT_NS) == OPSTREAM_E_BUSY) {
        agent_log("the application's profiling waits no longer for ours to end");
    }
}

void agent_release(void) {
    pthread_mutex_lock(&mutex);
    holds--;
    opstream_publisher *publisher = agent_publisher();
    pthread_mutex_unlock(&mutex);
    if (publisher) {
        opstream_publisher_restore(publisher);
    }
}
