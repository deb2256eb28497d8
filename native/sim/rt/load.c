/* The many ways to load a model. */
#include "load.h"

#include "failure.h"
#include "model.h"
#include "process.h"

static aclError check_memory(const struct workload *workload, struct load_memory memory) {
    if (memory.work && memory.work_size < workload_work_bytes(workload)) {
        return fail(ACL_ERROR_INVALID_PARAM, "%zu bytes of work memory, the model needs %zu", memory.work_size,
                    workload_work_bytes(workload));
    }
    if (memory.weights && memory.weights_size < workload_weight_bytes(workload)) {
        return fail(ACL_ERROR_INVALID_PARAM, "%zu bytes of weight memory, the model needs %zu", memory.weights_size,
                    workload_weight_bytes(workload));
    }
    return ACL_SUCCESS;
}

static aclError check_call(const void *model, const void *ret) {
    if (!model || !ret) {
        return fail(ACL_ERROR_INVALID_PARAM, "no model, or no place for what is asked");
    }
    return sim_initialised() ? ACL_SUCCESS : fail(ACL_ERROR_UNINITIALIZE, "aclInit comes first");
}

static aclError finish(struct workload *workload, struct load_memory memory, uint32_t *ret_id) {
    struct model *model = NULL;
    aclError error = check_memory(workload, memory);
    if (error) {
        workload_free(workload);
        return error;
    }
    error = model_load(workload, false, &model);
    if (!error) {
        *ret_id = model->id;
    }
    return error;
}

aclError load_file(const char *path, struct load_memory memory, uint32_t *ret_id) {
    struct workload *workload = NULL;
    aclError error = check_call(path, ret_id);
    error = error ? error : workload_from_file(path, &workload);
    return error ? error : finish(workload, memory, ret_id);
}

aclError load_memory(const void *model, size_t size, struct load_memory memory, uint32_t *ret_id) {
    struct workload *workload = NULL;
    aclError error = check_call(model, ret_id);
    error = error ? error : workload_from_memory(model, size, &workload);
    return error ? error : finish(workload, memory, ret_id);
}

aclError aclmdlLoadFromFile(const char *modelPath, uint32_t *modelId) {
    return load_file(modelPath, (struct load_memory){0}, modelId);
}

aclError aclmdlLoadFromFileWithMem(const char *modelPath, uint32_t *modelId, void *workPtr, size_t workSize, void *weightPtr,
                                   size_t weightSize) {
    return load_file(modelPath, (struct load_memory){workPtr, workSize, weightPtr, weightSize}, modelId);
}

aclError aclmdlLoadFromMem(const void *model, size_t modelSize, uint32_t *modelId) {
    return load_memory(model, modelSize, (struct load_memory){0}, modelId);
}

aclError aclmdlLoadFromMemWithMem(const void *model, size_t modelSize, uint32_t *modelId, void *workPtr, size_t workSize, void *weightPtr,
                                  size_t weightSize) {
    return load_memory(model, modelSize, (struct load_memory){workPtr, workSize, weightPtr, weightSize}, modelId);
}

static void answer_sizes(struct workload *workload, size_t *ret_work_size, size_t *ret_weight_size) {
    *ret_work_size = workload_work_bytes(workload);
    *ret_weight_size = workload_weight_bytes(workload);
    workload_free(workload);
}

aclError aclmdlQuerySize(const char *fileName, size_t *workSize, size_t *weightSize) {
    struct workload *workload = NULL;
    aclError error = check_call(fileName, workSize && weightSize ? workSize : NULL);
    error = error ? error : workload_from_file(fileName, &workload);
    if (!error) {
        answer_sizes(workload, workSize, weightSize);
    }
    return error;
}

aclError aclmdlQuerySizeFromMem(const void *model, size_t modelSize, size_t *workSize, size_t *weightSize) {
    struct workload *workload = NULL;
    aclError error = check_call(model, workSize && weightSize ? workSize : NULL);
    error = error ? error : workload_from_memory(model, modelSize, &workload);
    if (!error) {
        answer_sizes(workload, workSize, weightSize);
    }
    return error;
}

aclError aclmdlBundleLoadFromFile(const char *modelPath, uint32_t *bundleId) {
    struct workload *workload = NULL;
    struct model *model = NULL;
    aclError error = check_call(modelPath, bundleId);
    error = error ? error : workload_from_file(modelPath, &workload);
    error = error ? error : model_load(workload, true, &model);
    if (!error) {
        *bundleId = model->bundle_id;
    }
    return error;
}
