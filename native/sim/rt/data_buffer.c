#include <stdlib.h>

#include "failure.h"

struct aclDataBuffer {
    void *data;
    size_t size;
};

size_t aclDataTypeSize(aclDataType dataType) {
    switch (dataType) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
        return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
        return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
        return 4;
    case ACL_DOUBLE:
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_COMPLEX64:
        return 8;
    case ACL_COMPLEX128:
        return 16;
    default:
        return 0;
    }
}

aclDataBuffer *aclCreateDataBuffer(void *data, size_t size) {
    aclDataBuffer *buffer = malloc(sizeof *buffer);
    if (!buffer) {
        fail(ACL_ERROR_BAD_ALLOC, "no memory for a data buffer");
        return NULL;
    }
    *buffer = (aclDataBuffer){.data = data, .size = size};
    return buffer;
}

aclError aclDestroyDataBuffer(const aclDataBuffer *dataBuffer) {
    if (!dataBuffer) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclDestroyDataBuffer: no data buffer");
    }
    free((void *)dataBuffer);
    return ACL_SUCCESS;
}

aclError aclUpdateDataBuffer(aclDataBuffer *dataBuffer, void *data, size_t size) {
    if (!dataBuffer) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclUpdateDataBuffer: no data buffer");
    }
    *dataBuffer = (aclDataBuffer){.data = data, .size = size};
    return ACL_SUCCESS;
}

void *aclGetDataBufferAddr(const aclDataBuffer *dataBuffer) {
    return dataBuffer ? dataBuffer->data : NULL;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer *dataBuffer) {
    return (uint32_t)aclGetDataBufferSizeV2(dataBuffer);
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer) {
    return dataBuffer ? dataBuffer->size : 0;
}
