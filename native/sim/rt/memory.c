/* Device and pinned memory: both are the host's here. */
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "failure.h"
#include "stream.h"

static aclError allocate(void **ret_memory, size_t size) {
    uint32_t device = 0;
    if (!ret_memory || size == 0) {
        return fail(ACL_ERROR_INVALID_PARAM, "no place for the memory, or no bytes of it");
    }
    aclError error = context_device(&device);
    if (error) {
        return error;
    }
    void *memory = calloc(1, size);
    if (!memory) {
        return fail(ACL_ERROR_BAD_ALLOC, "no memory of %zu bytes", size);
    }
    *ret_memory = memory;
    return ACL_SUCCESS;
}

static aclError release(void *memory) {
    if (!memory) {
        return fail(ACL_ERROR_INVALID_PARAM, "no memory to free");
    }
    free(memory);
    return ACL_SUCCESS;
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    if (policy < ACL_MEM_MALLOC_HUGE_FIRST || policy > ACL_MEM_MALLOC_NORMAL_ONLY_P2P) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtMalloc: unknown policy %d", (int)policy);
    }
    return allocate(devPtr, size);
}

aclError aclrtFree(void *devPtr) {
    return release(devPtr);
}

aclError aclrtMallocHost(void **hostPtr, size_t size) {
    return allocate(hostPtr, size);
}

aclError aclrtFreeHost(void *hostPtr) {
    return release(hostPtr);
}

static aclError check_copy(const void *to, size_t room, const void *from, size_t size, aclrtMemcpyKind kind) {
    if (!to || !from || kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_DEFAULT) {
        return fail(ACL_ERROR_INVALID_PARAM, "a copy needs a source, a destination and a direction");
    }
    if (size > room) {
        return fail(ACL_ERROR_INVALID_PARAM, "a copy of %zu bytes into %zu", size, room);
    }
    return ACL_SUCCESS;
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind) {
    aclError error = check_copy(dst, destMax, src, count, kind);
    if (!error) {
        memcpy(dst, src, count);
    }
    return error;
}

struct copy {
    void *to;
    const void *from;
    size_t size;
};

static void do_copy(void *argument) {
    struct copy *copy = argument;
    memcpy(copy->to, copy->from, copy->size);
    free(copy);
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream handle) {
    struct stream *stream = NULL;
    aclError error = check_copy(dst, destMax, src, count, kind);
    if (!error) {
        error = stream_of_handle(handle, &stream);
    }
    if (error) {
        return error;
    }
    struct copy *copy = malloc(sizeof *copy);
    if (!copy) {
        return fail(ACL_ERROR_BAD_ALLOC, "no memory for a copy's task");
    }
    *copy = (struct copy){.to = dst, .from = src, .size = count};
    error = stream_add(stream, do_copy, copy);
    if (error) {
        free(copy);
    }
    return error;
}
