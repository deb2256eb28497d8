#include "subscription.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "device_pipe.h"
#include "headroom.h"

#define METRICS_NONE 0xFF

enum { INVALID_MODEL_ID = 100011, ALREADY_RUN = 100042, REPEATED_SUBSCRIBE = 148046, API_CONFLICT = 148047 };

struct subscribed_model {
    uint32_t model_id, device, row;
    bool on;
};

struct subscriptions {
    char *library_path;
    struct vendor *vendor;
    struct segment_writer *writer;
    struct reader *reader;
    struct subscribed_model *models;
    size_t count, capacity;
    bool spent[DEVICES_MAX]; /* went off while another device stayed on */
    bool paused;             /* all are off until subscriptions_resume, whatever is added */
    bool found;              /* `vendor` is filled */
    bool begun;              /* the vendor has been asked, so that it has taken what it takes */
};

int subscriptions_new(const char *library_path, struct vendor *vendor, struct segment_writer *writer, struct reader *reader,
                      struct subscriptions **ret_subscriptions) {
    struct subscriptions *subscriptions = calloc(1, sizeof *subscriptions);
    char *copy = library_path ? strdup(library_path) : NULL;
    if (!subscriptions || (library_path && !copy)) {
        free(subscriptions);
        free(copy);
        return OPSTREAM_E_MEMORY;
    }
    subscriptions->library_path = copy;
    subscriptions->vendor = vendor;
    subscriptions->writer = writer;
    subscriptions->reader = reader;
    *ret_subscriptions = subscriptions;
    return OPSTREAM_OK;
}

void subscriptions_free(struct subscriptions *subscriptions) {
    if (!subscriptions) {
        return;
    }
    device_pipes_close();
    free(subscriptions->library_path);
    free(subscriptions->models);
    free(subscriptions);
}

static bool device_is_on(const struct subscriptions *subscriptions, uint32_t device) {
    for (size_t i = 0; i < subscriptions->count; i++) {
        if (subscriptions->models[i].on && subscriptions->models[i].device == device) {
            return true;
        }
    }
    return false;
}

bool subscriptions_any(const struct subscriptions *subscriptions) {
    for (size_t i = 0; i < subscriptions->count; i++) {
        if (subscriptions->models[i].on) {
            return true;
        }
    }
    return false;
}

bool subscriptions_any_failed(const struct subscriptions *subscriptions) {
    for (size_t i = 0; i < subscriptions->count; i++) {
        if (!subscriptions->models[i].on) {
            return !subscriptions->paused;
        }
    }
    return false;
}

void subscriptions_check(const struct subscriptions *subscriptions) {
    for (size_t i = 0; i < subscriptions->count; i++) {
        if (subscriptions->models[i].on) {
            device_pipe_check(subscriptions->models[i].device);
        }
    }
}

static void set_state(struct subscriptions *subscriptions, const struct subscribed_model *model, enum segment_model_state state) {
    if (model->row != 0) { /* row 0 is of all who found no other: it has no state */
        segment_model_set_state(subscriptions->writer, model->row, state, clock_monotonic_ns());
    }
}

/* The vendor installs a handler for SIGINT, and leaves it there. */
static int call_subscribe(const struct vendor *vendor, uint32_t model_id, const void *config) {
    struct sigaction interrupt;
    bool saved = sigaction(SIGINT, NULL, &interrupt) == 0;
    int acl_error = vendor->model_subscribe(model_id, config);
    if (saved) {
        sigaction(SIGINT, &interrupt, NULL);
    }
    return acl_error;
}

static int try_on(struct subscriptions *subscriptions, const struct subscribed_model *model, int *ret_acl_error) {
    const struct vendor *vendor = subscriptions->vendor;
    int status = device_pipe_open(model->device, subscriptions->reader);
    if (status != OPSTREAM_OK) {
        return status;
    }
    void *config = vendor->create_subscribe_config(1, METRICS_NONE, device_pipe_write_end(model->device));
    if (!config) {
        return OPSTREAM_E_MEMORY;
    }
    reader_map_model(subscriptions->reader, model->model_id, model->row, clock_monotonic_ns());
    int acl_error = call_subscribe(vendor, model->model_id, config);
    vendor->destroy_subscribe_config(config);
    if (acl_error != 0) {
        segment_count_error(subscriptions->writer, acl_error);
        *ret_acl_error = acl_error;
        return OPSTREAM_E_VENDOR;
    }
    return OPSTREAM_OK;
}

/* The reader is still at what the last pipe holds, or somebody else has the vendor's profiler. */
static bool must_wait(int status, int acl_error) {
    return status == OPSTREAM_E_BUSY ||
           (status == OPSTREAM_E_VENDOR && (acl_error == ALREADY_RUN || acl_error == REPEATED_SUBSCRIBE || acl_error == API_CONFLICT));
}

static int switch_on(struct subscriptions *subscriptions, struct subscribed_model *model, int *ret_acl_error) {
    int status = try_on(subscriptions, model, ret_acl_error);
    model->on = status == OPSTREAM_OK;
    set_state(subscriptions, model, model->on ? MODEL_SUBSCRIBED : must_wait(status, *ret_acl_error) ? MODEL_PAUSED : MODEL_FAILED);
    if (!model->on && !device_is_on(subscriptions, model->device)) {
        device_pipe_close(model->device);
    }
    return status;
}

static int switch_off(struct subscriptions *subscriptions, struct subscribed_model *model, int *ret_acl_error) {
    device_pipe_check(model->device);
    int acl_error = subscriptions->vendor->model_unsubscribe(model->model_id);
    model->on = false; /* even if it failed: then the vendor knows the model no longer */
    if (acl_error != 0) {
        *ret_acl_error = acl_error;
        return OPSTREAM_E_VENDOR;
    }
    return OPSTREAM_OK;
}

/* The states first: unsubscribing takes as long as the reader needs for what the vendor has queued, seconds when it can't follow. One flush
 * for all: then everything that the vendor had is in the pipes. */
static void switch_all_off(struct subscriptions *subscriptions, enum segment_model_state state) {
    int unused = 0;
    for (size_t i = 0; i < subscriptions->count; i++) {
        set_state(subscriptions, &subscriptions->models[i], state);
    }
    for (size_t i = 0; i < subscriptions->count; i++) {
        if (subscriptions->models[i].on) {
            switch_off(subscriptions, &subscriptions->models[i], &unused);
        }
    }
    reader_flush(subscriptions->reader);
    memset(subscriptions->spent, 0, sizeof subscriptions->spent);
}

static struct subscribed_model *find(struct subscriptions *subscriptions, uint32_t model_id) {
    for (size_t i = 0; i < subscriptions->count; i++) {
        if (subscriptions->models[i].model_id == model_id) {
            return &subscriptions->models[i];
        }
    }
    return NULL;
}

static int have_vendor(struct subscriptions *subscriptions) {
    int status = subscriptions->found ? OPSTREAM_OK : vendor_find(subscriptions->library_path, subscriptions->vendor);
    subscriptions->found = status == OPSTREAM_OK;
    return status;
}

static bool have_room(struct subscriptions *subscriptions) {
    if (subscriptions->count < subscriptions->capacity) {
        return true;
    }
    size_t capacity = subscriptions->capacity ? 2 * subscriptions->capacity : 16;
    struct subscribed_model *models = realloc(subscriptions->models, capacity * sizeof *models);
    if (!models) {
        return false;
    }
    subscriptions->models = models;
    subscriptions->capacity = capacity;
    return true;
}

static void forget(struct subscriptions *subscriptions, struct subscribed_model *model) {
    set_state(subscriptions, model, MODEL_UNSUBSCRIBED);
    *model = subscriptions->models[--subscriptions->count];
}

int subscriptions_add(struct subscriptions *subscriptions, uint32_t model_id, uint32_t device, const char *name, int *ret_acl_error) {
    struct subscribed_model *known = find(subscriptions, model_id);
    if (known && (known->on || subscriptions->paused)) {
        return OPSTREAM_E_STATE;
    }
    if (known) {
        forget(subscriptions, known);
    }
    int status = have_vendor(subscriptions);
    if (status != OPSTREAM_OK) {
        return status;
    }
    if (!subscriptions->begun && !headroom_enough()) {
        return OPSTREAM_E_FULL;
    }
    if (!have_room(subscriptions)) {
        return OPSTREAM_E_MEMORY;
    }
    subscriptions->begun = true;
    struct subscribed_model *added = &subscriptions->models[subscriptions->count++];
    *added = (struct subscribed_model){.model_id = model_id, .device = device};
    added->row = segment_model_row(subscriptions->writer, model_id, device, name);
    if (subscriptions->paused) {
        set_state(subscriptions, added, MODEL_PAUSED);
        return OPSTREAM_OK;
    }
    if (subscriptions->spent[device]) {
        int unused = 0;
        switch_all_off(subscriptions, MODEL_UNSUBSCRIBED);
        for (struct subscribed_model *other = subscriptions->models; other != added; other++) {
            switch_on(subscriptions, other, &unused);
        }
    }
    status = switch_on(subscriptions, added, ret_acl_error);
    if (status == OPSTREAM_E_VENDOR && *ret_acl_error == INVALID_MODEL_ID) {
        subscriptions->count--;
    }
    return status;
}

int subscriptions_remove(struct subscriptions *subscriptions, uint32_t model_id, int *ret_acl_error) {
    struct subscribed_model *removed = find(subscriptions, model_id);
    if (!removed) {
        return OPSTREAM_E_STATE;
    }
    int status = OPSTREAM_OK;
    if (removed->on) {
        status = switch_off(subscriptions, removed, ret_acl_error);
        int flushed = reader_flush(subscriptions->reader);
        status = status != OPSTREAM_OK ? status : flushed;
        subscriptions->spent[removed->device] = !device_is_on(subscriptions, removed->device);
    }
    forget(subscriptions, removed);
    if (!subscriptions_any(subscriptions)) {
        memset(subscriptions->spent, 0, sizeof subscriptions->spent);
    }
    return status;
}

void subscriptions_remove_all(struct subscriptions *subscriptions) {
    switch_all_off(subscriptions, MODEL_UNSUBSCRIBED);
    subscriptions->count = 0;
}

void subscriptions_pause(struct subscriptions *subscriptions) {
    switch_all_off(subscriptions, MODEL_PAUSED);
    subscriptions->paused = true;
}

int subscriptions_resume(struct subscriptions *subscriptions) {
    int first = OPSTREAM_OK;
    subscriptions->paused = false;
    for (size_t i = 0; i < subscriptions->count; i++) {
        if (!subscriptions->models[i].on && subscriptions->spent[subscriptions->models[i].device]) {
            switch_all_off(subscriptions, MODEL_PAUSED);
        }
    }
    for (size_t i = 0; i < subscriptions->count; i++) {
        if (!subscriptions->models[i].on) {
            int acl_error = 0, status = switch_on(subscriptions, &subscriptions->models[i], &acl_error);
            first = first != OPSTREAM_OK ? first : status;
        }
    }
    return first;
}
