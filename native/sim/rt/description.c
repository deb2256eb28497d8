/* What a model's inputs and outputs are. */
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "model.h"

struct aclmdlDesc {
    struct workload *workload; /* NULL: not asked for yet */
};

aclmdlDesc *aclmdlCreateDesc(void) {
    aclmdlDesc *description = calloc(1, sizeof *description);
    if (!description) {
        fail(ACL_ERROR_BAD_ALLOC, "no memory for a description");
    }
    return description;
}

aclError aclmdlDestroyDesc(aclmdlDesc *modelDesc) {
    if (!modelDesc) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclmdlDestroyDesc: no description");
    }
    workload_free(modelDesc->workload);
    free(modelDesc);
    return ACL_SUCCESS;
}

aclError aclmdlGetDesc(aclmdlDesc *modelDesc, uint32_t modelId) {
    struct model *model = NULL;
    if (!modelDesc) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclmdlGetDesc: no description");
    }
    aclError error = model_use(modelId, &model);
    if (error) {
        return error;
    }
    workload_free(modelDesc->workload);
    modelDesc->workload = workload_share(model->workload);
    model_release(model);
    return ACL_SUCCESS;
}

static const struct workload_tensors none;

static const struct workload_tensors *inputs_of(const aclmdlDesc *description) {
    return description && description->workload ? &description->workload->inputs : &none;
}

static const struct workload_tensors *outputs_of(const aclmdlDesc *description) {
    return description && description->workload ? &description->workload->outputs : &none;
}

/* NULL when there is no such tensor. */
static const struct workload_tensor *tensor_at(const struct workload_tensors *tensors, size_t index) {
    if (index < tensors->count) {
        return &tensors->items[index];
    }
    fail(ACL_ERROR_INVALID_PARAM, "index %zu, but %zu inputs or outputs", index, tensors->count);
    return NULL;
}

static size_t size_at(const struct workload_tensors *tensors, size_t index) {
    const struct workload_tensor *tensor = tensor_at(tensors, index);
    return tensor ? tensor->bytes : 0;
}

static const char *name_at(const struct workload_tensors *tensors, size_t index) {
    const struct workload_tensor *tensor = tensor_at(tensors, index);
    return tensor ? tensor->dims.name : "";
}

static aclFormat format_at(const struct workload_tensors *tensors, size_t index) {
    const struct workload_tensor *tensor = tensor_at(tensors, index);
    return tensor ? tensor->format : ACL_FORMAT_UNDEFINED;
}

static aclDataType data_type_at(const struct workload_tensors *tensors, size_t index) {
    const struct workload_tensor *tensor = tensor_at(tensors, index);
    return tensor ? tensor->data_type : ACL_DT_UNDEFINED;
}

static aclError dims_at(const struct workload_tensors *tensors, size_t index, aclmdlIODims *ret_dims) {
    const struct workload_tensor *tensor = tensor_at(tensors, index);
    if (!tensor) {
        return ACL_ERROR_INVALID_PARAM;
    }
    if (!ret_dims) {
        return fail(ACL_ERROR_INVALID_PARAM, "no place for the dimensions");
    }
    *ret_dims = tensor->dims;
    return ACL_SUCCESS;
}

static aclError index_of(const struct workload_tensors *tensors, const char *name, size_t *ret_index) {
    if (!name || !ret_index) {
        return fail(ACL_ERROR_INVALID_PARAM, "no name, or no place for the index");
    }
    for (size_t i = 0; i < tensors->count; i++) {
        if (strcmp(tensors->items[i].dims.name, name) == 0) {
            *ret_index = i;
            return ACL_SUCCESS;
        }
    }
    return fail(ACL_ERROR_INVALID_PARAM, "no input or output \"%s\"", name);
}

size_t aclmdlGetNumInputs(aclmdlDesc *modelDesc) {
    return inputs_of(modelDesc)->count;
}

size_t aclmdlGetNumOutputs(aclmdlDesc *modelDesc) {
    return outputs_of(modelDesc)->count;
}

size_t aclmdlGetInputSizeByIndex(aclmdlDesc *modelDesc, size_t index) {
    return size_at(inputs_of(modelDesc), index);
}

size_t aclmdlGetOutputSizeByIndex(aclmdlDesc *modelDesc, size_t index) {
    return size_at(outputs_of(modelDesc), index);
}

const char *aclmdlGetInputNameByIndex(const aclmdlDesc *modelDesc, size_t index) {
    return name_at(inputs_of(modelDesc), index);
}

const char *aclmdlGetOutputNameByIndex(const aclmdlDesc *modelDesc, size_t index) {
    return name_at(outputs_of(modelDesc), index);
}

aclError aclmdlGetInputIndexByName(const aclmdlDesc *modelDesc, const char *name, size_t *index) {
    return index_of(inputs_of(modelDesc), name, index);
}

aclError aclmdlGetOutputIndexByName(const aclmdlDesc *modelDesc, const char *name, size_t *index) {
    return index_of(outputs_of(modelDesc), name, index);
}

aclError aclmdlGetInputDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    return dims_at(inputs_of(modelDesc), index, dims);
}

aclError aclmdlGetOutputDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    return dims_at(outputs_of(modelDesc), index, dims);
}

/* A workload's outputs have one size, whatever batch was set. */
aclError aclmdlGetCurOutputDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    return dims_at(outputs_of(modelDesc), index, dims);
}

aclFormat aclmdlGetInputFormat(const aclmdlDesc *modelDesc, size_t index) {
    return format_at(inputs_of(modelDesc), index);
}

aclFormat aclmdlGetOutputFormat(const aclmdlDesc *modelDesc, size_t index) {
    return format_at(outputs_of(modelDesc), index);
}

aclDataType aclmdlGetInputDataType(const aclmdlDesc *modelDesc, size_t index) {
    return data_type_at(inputs_of(modelDesc), index);
}

aclDataType aclmdlGetOutputDataType(const aclmdlDesc *modelDesc, size_t index) {
    return data_type_at(outputs_of(modelDesc), index);
}
