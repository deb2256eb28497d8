#include "model.h"

#include <pthread.h>
#include <stdlib.h>

#include "context.h"
#include "failure.h"
#include "process.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct model *models;
static uint32_t last_id;

/* Under the lock. NULL when there is none, or when it is being unloaded. */
static struct model *find(uint32_t id) {
    struct model *model = models;
    while (model && (model->id != id || model->is_unloading)) {
        model = model->next;
    }
    return model;
}

static struct model *find_bundle(uint32_t bundle_id) {
    struct model *model = models;
    while (model && (bundle_id == 0 || model->bundle_id != bundle_id || model->is_unloading)) {
        model = model->next;
    }
    return model;
}

static aclError no_model(uint32_t id) {
    return fail(ACL_ERROR_INVALID_MODEL_ID, "no model %u is loaded", id);
}

static aclError no_bundle(uint32_t id) {
    return fail(ACL_ERROR_INVALID_MODEL_ID, "no bundle %u is loaded", id);
}

aclError model_load(struct workload *workload, bool is_bundle, struct model **ret_model) {
    uint32_t device = 0;
    aclError error = context_device(&device);
    struct model *model = error ? NULL : calloc(1, sizeof *model);
    if (!model) {
        workload_free(workload);
        return error ? error : fail(ACL_ERROR_BAD_ALLOC, "no memory for a model");
    }
    model->device = device;
    model->workload = workload;
    pthread_mutex_lock(&lock);
    model->bundle_id = is_bundle ? ++last_id : 0;
    model->id = ++last_id;
    model->next = models;
    models = model;
    pthread_mutex_unlock(&lock);
    *ret_model = model;
    return ACL_SUCCESS;
}

aclError model_use(uint32_t id, struct model **ret_model) {
    pthread_mutex_lock(&lock);
    struct model *model = find(id);
    if (model) {
        model->uses++;
    }
    pthread_mutex_unlock(&lock);
    if (!model) {
        return no_model(id);
    }
    *ret_model = model;
    return ACL_SUCCESS;
}

void model_release(struct model *model) {
    pthread_mutex_lock(&lock);
    model->uses--;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

/* Called with the lock, which it gives back. The model stays in the list until nobody uses it: until then its records still come. */
static void unload(struct model *model) {
    model->is_unloading = true;
    while (model->uses > 0) {
        pthread_cond_wait(&released, &lock);
    }
    struct model **link = &models;
    while (*link != model) {
        link = &(*link)->next;
    }
    *link = model->next;
    pthread_mutex_unlock(&lock);

    const struct sim_profiler *profiler = process_profiler();
    if (profiler) {
        profiler->model_unloaded(model->id);
    }
    workload_free(model->workload);
    free(model);
}

aclError aclmdlUnload(uint32_t modelId) {
    pthread_mutex_lock(&lock);
    struct model *model = find(modelId);
    if (!model) {
        pthread_mutex_unlock(&lock);
        return no_model(modelId);
    }
    unload(model);
    return ACL_SUCCESS;
}

aclError aclmdlBundleUnload(uint32_t bundleId) {
    pthread_mutex_lock(&lock);
    struct model *model = find_bundle(bundleId);
    if (!model) {
        pthread_mutex_unlock(&lock);
        return no_bundle(bundleId);
    }
    unload(model);
    return ACL_SUCCESS;
}

aclError aclmdlBundleGetModelNum(uint32_t bundleId, size_t *modelNum) {
    if (!modelNum) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclmdlBundleGetModelNum: no place for the number");
    }
    pthread_mutex_lock(&lock);
    bool is_there = find_bundle(bundleId);
    pthread_mutex_unlock(&lock);
    if (!is_there) {
        return no_bundle(bundleId);
    }
    *modelNum = 1;
    return ACL_SUCCESS;
}

aclError aclmdlBundleGetModelId(uint32_t bundleId, size_t index, uint32_t *modelId) {
    if (!modelId || index > 0) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclmdlBundleGetModelId: no place for the model, or none of this index");
    }
    pthread_mutex_lock(&lock);
    struct model *model = find_bundle(bundleId);
    uint32_t id = model ? model->id : 0;
    pthread_mutex_unlock(&lock);
    if (!model) {
        return no_bundle(bundleId);
    }
    *modelId = id;
    return ACL_SUCCESS;
}

bool sim_model_device(uint32_t model_id, uint32_t *ret_device) {
    pthread_mutex_lock(&lock);
    struct model *model = models;
    while (model && model->id != model_id) {
        model = model->next;
    }
    if (model) {
        *ret_device = model->device;
    }
    pthread_mutex_unlock(&lock);
    return model;
}
