#include "dataset.h"

#include <stdlib.h>

#include "failure.h"

struct aclmdlDataset {
    aclDataBuffer **buffers;
    size_t count;
};

aclmdlDataset *aclmdlCreateDataset(void) {
    aclmdlDataset *dataset = calloc(1, sizeof *dataset);
    if (!dataset) {
        fail(ACL_ERROR_BAD_ALLOC, "no memory for a dataset");
    }
    return dataset;
}

aclError aclmdlDestroyDataset(const aclmdlDataset *dataset) {
    if (!dataset) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclmdlDestroyDataset: no dataset");
    }
    free(dataset->buffers);
    free((void *)dataset);
    return ACL_SUCCESS;
}

aclError aclmdlAddDatasetBuffer(aclmdlDataset *dataset, aclDataBuffer *dataBuffer) {
    if (!dataset || !dataBuffer) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclmdlAddDatasetBuffer: no dataset or no data buffer");
    }
    aclDataBuffer **buffers = realloc(dataset->buffers, (dataset->count + 1) * sizeof(aclDataBuffer *));
    if (!buffers) {
        return fail(ACL_ERROR_BAD_ALLOC, "no memory for a dataset's buffer");
    }
    buffers[dataset->count++] = dataBuffer;
    dataset->buffers = buffers;
    return ACL_SUCCESS;
}

size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset *dataset) {
    return dataset ? dataset->count : 0;
}

aclDataBuffer *aclmdlGetDatasetBuffer(const aclmdlDataset *dataset, size_t index) {
    return dataset && index < dataset->count ? dataset->buffers[index] : NULL;
}

aclError dataset_check(const aclmdlDataset *dataset, const struct workload_tensors *tensors, const char *what, aclError mismatch) {
    if (!dataset) {
        return fail(ACL_ERROR_INVALID_PARAM, "no %s dataset", what);
    }
    if (dataset->count != tensors->count) {
        return fail(mismatch, "the %s dataset has %zu buffers, the model %zu", what, dataset->count, tensors->count);
    }
    for (size_t i = 0; i < tensors->count; i++) {
        size_t size = aclGetDataBufferSizeV2(dataset->buffers[i]);
        if (!aclGetDataBufferAddr(dataset->buffers[i]) || size < tensors->items[i].bytes) {
            return fail(mismatch, "%s %zu (%s) has a buffer of %zu bytes, the model wants %zu", what, i, tensors->items[i].dims.name, size,
                        tensors->items[i].bytes);
        }
    }
    return ACL_SUCCESS;
}
