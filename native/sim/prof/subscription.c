/* Which models are subscribed, which devices write, and what becomes of them at exit. */
#include "acl/acl_prof.h"

#include "crew.h"
#include "fault.h"
#include "journal.h"
#include "mode.h"
#include "names.h"
#include "sim.h"
#include "writer.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_MODELS 1024u

struct aclprofSubscribeConfig {
    int8_t time_info;
    aclprofAicoreMetrics metrics;
    int *fd;
};

struct model {
    uint32_t id;
    uint32_t device;
    bool half;     /* known, but refused for its configuration: no records */
    bool unloaded; /* can't be unsubscribed any more */
};

struct device {
    struct writer writer;
    /* One execution at a time makes records; whoever unsubscribes waits here for those that still do. */
    pthread_mutex_t producer;
    _Atomic bool on;
    bool running; /* the writer is, from the first subscription until all devices are off */
    bool tangled; /* off and on again while another device was on: can't be unsubscribed any more */
};

static struct device devices[SIM_MAX_DEVICES];
static struct aclprofSubscribeConfig in_force;

/* Under `models_lock` alone, which is never held while waiting, so that unloading a model doesn't hang behind an unsubscribe that does.
 * Changed with `mode_lock` held too. */
static pthread_mutex_t models_lock = PTHREAD_MUTEX_INITIALIZER;
static struct model models[MAX_MODELS];
static size_t model_count;

static pid_t owner; /* the process that has the threads; 0 when there are none */

/* ---- Models; the caller holds models_lock ---- */

static struct model *find_model(uint32_t id) {
    for (size_t i = 0; i < model_count; i++) {
        if (models[i].id == id) {
            return &models[i];
        }
    }
    return NULL;
}

static bool any_model_on(uint32_t device) {
    for (size_t i = 0; i < model_count; i++) {
        if (models[i].device == device && !models[i].half) {
            return true;
        }
    }
    return false;
}

static void add_model(uint32_t id, uint32_t device, bool half) {
    pthread_mutex_lock(&models_lock);
    models[model_count++] = (struct model){.id = id, .device = device, .half = half};
    pthread_mutex_unlock(&models_lock);
}

/* Returns when whoever was making a record has done so: it may be waiting for room in the queue. */
static void await_producer(struct device *device) {
    pthread_mutex_lock(&device->producer);
    pthread_mutex_unlock(&device->producer);
}

/* ---- What the runtime half calls ---- */

static void record(uint32_t device, uint32_t model_id, const char *name, const char *type, uint64_t start_ns, uint64_t end_ns) {
    if (device >= SIM_MAX_DEVICES || !atomic_load_explicit(&devices[device].on, memory_order_acquire)) {
        return;
    }
    static _Thread_local uint32_t thread_id;
    if (!thread_id) {
        thread_id = (uint32_t)syscall(SYS_gettid);
    }
    struct device *to = &devices[device];
    pthread_mutex_lock(&to->producer);
    pthread_mutex_lock(&models_lock);
    const struct model *model = find_model(model_id);
    bool wanted = atomic_load(&to->on) && model && !model->half && model->device == device;
    pthread_mutex_unlock(&models_lock);
    if (wanted) {
        struct record made = {
            .model_id = model_id,
            .thread_id = thread_id,
            .device = device,
            .name_index = names_add(name, type),
            .start = start_ns,
            .end = end_ns,
            .duration = end_ns - start_ns,
        };
        journal_add(JOURNAL_RECORDS_MADE, 1);
        if (strcmp(name, "keypoint_op") == 0) {
            journal_add(JOURNAL_KEYPOINTS_MADE, 1);
        }
        queue_push(&to->writer.queue, &made);
    }
    pthread_mutex_unlock(&to->producer);
}

static void model_unloaded(uint32_t model_id) {
    pthread_mutex_lock(&models_lock);
    struct model *model = find_model(model_id);
    if (model) {
        model->unloaded = true;
    }
    pthread_mutex_unlock(&models_lock);
}

__attribute__((constructor)) static void begin(void) {
    static const struct sim_profiler profiler = {.record = record, .model_unloaded = model_unloaded};
    for (size_t i = 0; i < SIM_MAX_DEVICES; i++) {
        pthread_mutex_init(&devices[i].producer, NULL);
    }
    journal_open();
    fault_read_environment();
    mode_read_environment();
    sim_attach_profiler(&profiler);
}

/* ---- Threads, signal and exit; the caller holds mode_lock ---- */

static void stop_threads(void) {
    for (size_t i = 0; i < SIM_MAX_DEVICES; i++) {
        if (devices[i].running) {
            writer_stop(&devices[i].writer);
        }
        devices[i].running = false;
    }
    crew_stop();
}

/* Kills the process as SIGINT would have done without it; an application's own handler is gone. */
static void on_interrupt(int number) {
    signal(number, SIG_DFL);
    raise(number);
}

/* Joins the threads, as a destructor of the real one does: it hangs while nobody reads, and in a forked child, which hasn't got the
 * threads, it is the end. */
static void end_at_exit(void) {
    if (owner != 0 && owner != getpid()) {
        abort();
    }
    pthread_mutex_lock(&mode_lock);
    for (size_t i = 0; i < SIM_MAX_DEVICES; i++) {
        atomic_store(&devices[i].on, false);
        await_producer(&devices[i]);
    }
    stop_threads();
    pthread_mutex_unlock(&mode_lock);
}

static void first_device_on(void) {
    static bool been_here;
    if (!been_here) {
        atexit(end_at_exit);
    }
    been_here = true;
    owner = getpid();
    signal(SIGINT, on_interrupt);
    crew_start();
}

static void all_devices_off(void) {
    stop_threads();
    owner = 0;
    for (size_t i = 0; i < SIM_MAX_DEVICES; i++) {
        int *fd = atomic_load(&devices[i].writer.fd);
        if (fd) {
            int number = __atomic_exchange_n(fd, -1, __ATOMIC_RELAXED);
            if (number >= 0) {
                close(number);
            }
        }
        atomic_store(&devices[i].writer.fd, NULL);
    }
}

/* ---- Subscribing ---- */

aclprofSubscribeConfig *aclprofCreateSubscribeConfig(int8_t timeInfoSwitch, aclprofAicoreMetrics metrics, void *fd) {
    mode_called_too_early();
    if (!fd) {
        return NULL;
    }
    aclprofSubscribeConfig *config = malloc(sizeof *config);
    if (config) {
        *config = (aclprofSubscribeConfig){.time_info = timeInfoSwitch, .metrics = metrics, .fd = fd};
    }
    return config;
}

aclError aclprofDestroySubscribeConfig(const aclprofSubscribeConfig *config) {
    mode_called_too_early();
    if (!config) {
        return ACL_ERROR_INVALID_PARAM;
    }
    free((void *)config);
    return 0;
}

static aclError device_on(struct device *device, uint32_t number, int *fd) {
    if (!device->running) {
        if (writer_start(&device->writer, number) != 0) {
            return ACL_ERROR_PROFILING_FAILURE;
        }
        device->running = true;
        device->tangled = false;
    } else {
        device->tangled = true;
    }
    /* A device that comes again brings another int: the one before is forgotten, its descriptor stays open. */
    atomic_store(&device->writer.fd, fd);
    atomic_store(&device->on, true);
    return 0;
}

static aclError subscribe(uint32_t id, const aclprofSubscribeConfig *config) {
    if (mode == MODE_COMMAND_LINE) {
        return ACL_ERROR_PROF_ALREADY_RUN;
    }
    if (mode == MODE_COLLECTING) {
        return ACL_ERROR_PROF_API_CONFLICT;
    }
    if (!config || config->metrics != ACL_AICORE_NONE || !config->time_info) {
        return ACL_ERROR_INVALID_PARAM;
    }
    if (fault_complain()) {
        return ACL_ERROR_PROFILING_FAILURE;
    }
    int fault = fault_subscribe();
    if (fault) {
        return fault;
    }
    uint32_t number;
    if (!sim_model_device(id, &number)) {
        return ACL_ERROR_INVALID_MODEL_ID;
    }
    if (find_model(id)) {
        return ACL_ERROR_PROF_REPEAT_SUBSCRIBE;
    }
    if (model_count == MAX_MODELS) {
        return ACL_ERROR_PROFILING_FAILURE;
    }

    struct device *device = &devices[number];
    if (mode == MODE_SUBSCRIBED && config->time_info != in_force.time_info) {
        if (!device->on) {
            add_model(id, number, true);
        }
        return ACL_ERROR_INVALID_PROFILING_CONFIG;
    }
    if (mode == MODE_OFF) {
        first_device_on();
    }
    if (!device->on && device_on(device, number, config->fd) != 0) {
        if (mode == MODE_OFF) {
            all_devices_off();
        }
        return ACL_ERROR_PROFILING_FAILURE;
    }
    in_force = *config;
    mode = MODE_SUBSCRIBED;
    add_model(id, number, false);
    return 0;
}

aclError aclprofModelSubscribe(uint32_t modelId, const aclprofSubscribeConfig *config) {
    mode_called_too_early();
    pthread_mutex_lock(&mode_lock);
    aclError status = subscribe(modelId, config);
    pthread_mutex_unlock(&mode_lock);
    return status;
}

/* ---- Unsubscribing ---- */

/* Takes the model away; its device then gets no new records of it. */
static aclError remove_model(uint32_t id, struct model *ret_removed) {
    uint32_t unused;
    bool loaded = sim_model_device(id, &unused);
    pthread_mutex_lock(&models_lock);
    struct model *model = find_model(id);
    bool possible = model && loaded && !model->unloaded && !devices[model->device].tangled;
    if (possible) {
        *ret_removed = *model;
        *model = models[--model_count];
    }
    pthread_mutex_unlock(&models_lock);
    return possible ? 0 : ACL_ERROR_INVALID_MODEL_ID;
}

static aclError unsubscribe(uint32_t id) {
    if (mode == MODE_COMMAND_LINE) {
        return ACL_ERROR_PROF_ALREADY_RUN;
    }
    if (mode == MODE_COLLECTING) {
        return ACL_ERROR_PROF_API_CONFLICT;
    }
    struct model removed;
    aclError status = remove_model(id, &removed);
    if (status) {
        return status;
    }
    struct device *device = &devices[removed.device];
    if (!removed.half) {
        if (!any_model_on(removed.device)) {
            atomic_store(&device->on, false);
        }
        await_producer(device);
        queue_drain(&device->writer.queue);
    }
    if (model_count == 0) {
        all_devices_off();
        mode = MODE_OFF;
    }
    return 0;
}

aclError aclprofModelUnSubscribe(uint32_t modelId) {
    mode_called_too_early();
    pthread_mutex_lock(&mode_lock);
    aclError status = unsubscribe(modelId);
    pthread_mutex_unlock(&mode_lock);
    return status;
}
