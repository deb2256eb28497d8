/* Loads and unloads: a load is forwarded, then the model is subscribed; it is unsubscribed, then the unload is forwarded. */
#include "agent.h"
#include "load_config.h"
#include "model_name.h"
#include "real.h"

/* Evaluates to the vendor's answer. */
#define FORWARD(name, ...)                                                                                                                 \
    __extension__({                                                                                                                        \
        real_##name##_function forward_real = REAL(name);                                                                                  \
        agent_forward_begin();                                                                                                             \
        int forward_answer = forward_real ? forward_real(__VA_ARGS__) : REAL_MISSING;                                                      \
        agent_forward_end();                                                                                                               \
        forward_answer;                                                                                                                    \
    })

WRAPPER int aclmdlLoadFromFile(const char *path, uint32_t *id);
WRAPPER int aclmdlLoadFromFileWithMem(const char *path, uint32_t *id, void *work, size_t work_bytes, void *weights, size_t weights_bytes);
WRAPPER int aclmdlLoadFromFileWithQ(const char *path, uint32_t *id, const uint32_t *in, size_t ins, const uint32_t *out, size_t outs);
WRAPPER int aclmdlLoadFromMem(const void *model, size_t bytes, uint32_t *id);
WRAPPER int aclmdlLoadFromMemWithMem(const void *model, size_t bytes, uint32_t *id, void *work, size_t work_bytes, void *weights,
                                     size_t weights_bytes);
WRAPPER int aclmdlLoadFromMemWithQ(const void *model, size_t bytes, uint32_t *id, const uint32_t *in, size_t ins, const uint32_t *out,
                                   size_t outs);
WRAPPER int aclmdlLoadWithConfig(const void *handle, uint32_t *id);
WRAPPER int aclmdlUnload(uint32_t id);
WRAPPER int aclmdlBundleLoadFromFile(const char *path, uint32_t *bundle);
WRAPPER int aclmdlBundleLoadFromMem(const void *model, size_t bytes, uint32_t *bundle);
WRAPPER int aclmdlBundleUnload(uint32_t bundle);

/* ---- Models ---- */

static int loaded_from_file(int answer, const char *path, const uint32_t *id) {
    struct agent_visit visit;
    if (answer == 0 && agent_visit_begin(&visit)) {
        char name[MODEL_NAME_BYTES];
        model_name_of_path(path, name);
        agent_loaded(*id, name);
        agent_visit_end(&visit);
    }
    return answer;
}

static int loaded_from_memory(int answer, const void *model, size_t bytes, const uint32_t *id) {
    struct agent_visit visit;
    if (answer == 0 && agent_visit_begin(&visit)) {
        char name[MODEL_NAME_BYTES];
        model_name_of_memory(model, bytes, name);
        agent_loaded(*id, name);
        agent_visit_end(&visit);
    }
    return answer;
}

int aclmdlLoadFromFile(const char *path, uint32_t *id) {
    return loaded_from_file(FORWARD(aclmdlLoadFromFile, path, id), path, id);
}

int aclmdlLoadFromFileWithMem(const char *path, uint32_t *id, void *work, size_t work_bytes, void *weights, size_t weights_bytes) {
    return loaded_from_file(FORWARD(aclmdlLoadFromFileWithMem, path, id, work, work_bytes, weights, weights_bytes), path, id);
}

int aclmdlLoadFromFileWithQ(const char *path, uint32_t *id, const uint32_t *in, size_t ins, const uint32_t *out, size_t outs) {
    return loaded_from_file(FORWARD(aclmdlLoadFromFileWithQ, path, id, in, ins, out, outs), path, id);
}

int aclmdlLoadFromMem(const void *model, size_t bytes, uint32_t *id) {
    return loaded_from_memory(FORWARD(aclmdlLoadFromMem, model, bytes, id), model, bytes, id);
}

int aclmdlLoadFromMemWithMem(const void *model, size_t bytes, uint32_t *id, void *work, size_t work_bytes, void *weights,
                             size_t weights_bytes) {
    int answer = FORWARD(aclmdlLoadFromMemWithMem, model, bytes, id, work, work_bytes, weights, weights_bytes);
    return loaded_from_memory(answer, model, bytes, id);
}

int aclmdlLoadFromMemWithQ(const void *model, size_t bytes, uint32_t *id, const uint32_t *in, size_t ins, const uint32_t *out,
                           size_t outs) {
    return loaded_from_memory(FORWARD(aclmdlLoadFromMemWithQ, model, bytes, id, in, ins, out, outs), model, bytes, id);
}

int aclmdlLoadWithConfig(const void *handle, uint32_t *id) {
    int answer = FORWARD(aclmdlLoadWithConfig, handle, id);
    struct agent_visit visit;
    if (answer == 0 && agent_visit_begin(&visit)) {
        char name[MODEL_NAME_BYTES];
        load_config_name(handle, name);
        agent_loaded(*id, name);
        agent_visit_end(&visit);
    }
    return answer;
}

int aclmdlUnload(uint32_t id) {
    struct agent_visit visit;
    if (agent_visit_begin(&visit)) {
        agent_unloading(id);
    }
    agent_visit_end(&visit);
    return FORWARD(aclmdlUnload, id);
}

/* ---- Bundles ---- */

/* Each model of the bundle, by what the vendor says about it. `name` is NULL when they are about to be unloaded. */
static void each_model(uint32_t bundle, const char *name) {
    real_aclmdlBundleGetModelNum_function get_number = REAL(aclmdlBundleGetModelNum);
    real_aclmdlBundleGetModelId_function get_id = REAL(aclmdlBundleGetModelId);
    size_t number = 0;
    uint32_t id;
    if (!get_number || !get_id || get_number(bundle, &number) != 0) {
        return;
    }
    for (size_t i = 0; i < number; i++) {
        char model[MODEL_NAME_BYTES];
        if (get_id(bundle, i, &id) != 0) {
            continue;
        }
        if (name) {
            model_name_in_bundle(name, i, model);
            agent_loaded(id, model);
        } else {
            agent_unloading(id);
        }
    }
}

int aclmdlBundleLoadFromFile(const char *path, uint32_t *bundle) {
    int answer = FORWARD(aclmdlBundleLoadFromFile, path, bundle);
    struct agent_visit visit;
    if (answer == 0 && agent_visit_begin(&visit)) {
        char name[MODEL_NAME_BYTES];
        model_name_of_path(path, name);
        each_model(*bundle, name);
        agent_visit_end(&visit);
    }
    return answer;
}

int aclmdlBundleLoadFromMem(const void *model, size_t bytes, uint32_t *bundle) {
    int answer = FORWARD(aclmdlBundleLoadFromMem, model, bytes, bundle);
    struct agent_visit visit;
    if (answer == 0 && agent_visit_begin(&visit)) {
        char name[MODEL_NAME_BYTES];
        model_name_of_memory(model, bytes, name);
        each_model(*bundle, name);
        agent_visit_end(&visit);
    }
    return answer;
}

int aclmdlBundleUnload(uint32_t bundle) {
    struct agent_visit visit;
    if (agent_visit_begin(&visit) && agent_publisher()) {
        each_model(bundle, NULL);
    }
    agent_visit_end(&visit);
    return FORWARD(aclmdlBundleUnload, bundle);
}
