/* Loading by attributes. */
#include "load.h"

#include <stdlib.h>
#include <string.h>

#include "failure.h"

struct aclmdlConfigHandle {
    size_t load_type;
    char *path;
    void *model;
    size_t model_size;
    struct load_memory memory;
};

aclmdlConfigHandle *aclmdlCreateConfigHandle(void) {
    aclmdlConfigHandle *handle = calloc(1, sizeof *handle);
    if (!handle) {
        fail(ACL_ERROR_BAD_ALLOC, "no memory for a configuration");
    }
    return handle;
}

aclError aclmdlDestroyConfigHandle(aclmdlConfigHandle *handle) {
    if (!handle) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclmdlDestroyConfigHandle: no configuration");
    }
    free(handle->path);
    free(handle);
    return ACL_SUCCESS;
}

static aclError copy(void *place, size_t place_size, const void *value, size_t value_size) {
    if (value_size != place_size) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclmdlSetConfigOpt: a value of %zu bytes where one of %zu belongs", value_size, place_size);
    }
    memcpy(place, value, place_size);
    return ACL_SUCCESS;
}

static aclError set_path(aclmdlConfigHandle *handle, const void *value, size_t value_size) {
    const char *path = NULL;
    aclError error = copy(&path, sizeof path, value, value_size);
    if (error) {
        return error;
    }
    char *own = path ? strdup(path) : NULL;
    if (!own) {
        return fail(path ? ACL_ERROR_BAD_ALLOC : ACL_ERROR_INVALID_PARAM, "aclmdlSetConfigOpt: no path, or no memory for it");
    }
    free(handle->path);
    handle->path = own;
    return ACL_SUCCESS;
}

aclError aclmdlSetConfigOpt(aclmdlConfigHandle *handle, aclmdlConfigAttr attr, const void *attrValue, size_t valueSize) {
    int32_t unused_int;
    size_t unused_size;
    if (!handle || !attrValue) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclmdlSetConfigOpt: no configuration or no value");
    }
    switch (attr) {
    case ACL_MDL_PRIORITY_INT32:
        return copy(&unused_int, sizeof unused_int, attrValue, valueSize);
    case ACL_MDL_WORKSPACE_MEM_OPTIMIZE:
        return copy(&unused_size, sizeof unused_size, attrValue, valueSize);
    case ACL_MDL_LOAD_TYPE_SIZET:
        return copy(&handle->load_type, sizeof handle->load_type, attrValue, valueSize);
    case ACL_MDL_PATH_PTR:
        return set_path(handle, attrValue, valueSize);
    case ACL_MDL_MEM_ADDR_PTR:
        return copy(&handle->model, sizeof handle->model, attrValue, valueSize);
    case ACL_MDL_MEM_SIZET:
        return copy(&handle->model_size, sizeof handle->model_size, attrValue, valueSize);
    case ACL_MDL_WEIGHT_ADDR_PTR:
        return copy(&handle->memory.weights, sizeof handle->memory.weights, attrValue, valueSize);
    case ACL_MDL_WEIGHT_SIZET:
        return copy(&handle->memory.weights_size, sizeof handle->memory.weights_size, attrValue, valueSize);
    case ACL_MDL_WORKSPACE_ADDR_PTR:
        return copy(&handle->memory.work, sizeof handle->memory.work, attrValue, valueSize);
    case ACL_MDL_WORKSPACE_SIZET:
        return copy(&handle->memory.work_size, sizeof handle->memory.work_size, attrValue, valueSize);
    default:
        return fail(ACL_ERROR_INVALID_PARAM, "aclmdlSetConfigOpt: attribute %d is unknown, or of queues", (int)attr);
    }
}

aclError aclmdlLoadWithConfig(const aclmdlConfigHandle *handle, uint32_t *modelId) {
    if (!handle) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclmdlLoadWithConfig: no configuration");
    }
    switch (handle->load_type) {
    case ACL_MDL_LOAD_FROM_FILE:
        return load_file(handle->path, (struct load_memory){0}, modelId);
    case ACL_MDL_LOAD_FROM_FILE_WITH_MEM:
        return load_file(handle->path, handle->memory, modelId);
    case ACL_MDL_LOAD_FROM_MEM:
        return load_memory(handle->model, handle->model_size, (struct load_memory){0}, modelId);
    case ACL_MDL_LOAD_FROM_MEM_WITH_MEM:
        return load_memory(handle->model, handle->model_size, handle->memory, modelId);
    default:
        return fail(ACL_ERROR_INVALID_PARAM, "aclmdlLoadWithConfig: load type %zu is unknown, or of queues", handle->load_type);
    }
}
