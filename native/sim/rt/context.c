#include "context.h"

#include <pthread.h>
#include <stdlib.h>

#include "device.h"
#include "failure.h"
#include "stream.h"

struct context {
    struct context *next;
    uint32_t device;
    struct stream *default_stream;
};

/* A thread keeps its pointer when another destroys the context, so a pointer counts only as long as the list has it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *contexts;
static _Thread_local struct context *current;

/* The link that points to the context, or NULL. Under the lock. */
static struct context **find(const struct context *context) {
    for (struct context **link = &contexts; *link; link = &(*link)->next) {
        if (*link == context) {
            return link;
        }
    }
    return NULL;
}

static aclError no_context(void) {
    return fail(ACL_ERROR_RT_CONTEXT_NULL, "this thread has no context: aclrtSetDevice or aclrtSetCurrentContext comes first");
}

aclError context_device(uint32_t *ret_device) {
    pthread_mutex_lock(&lock);
    bool is_there = find(current);
    if (is_there) {
        *ret_device = current->device;
    }
    pthread_mutex_unlock(&lock);
    return is_there ? ACL_SUCCESS : no_context();
}

aclError context_default_stream(struct stream **ret_stream) {
    aclError error = ACL_SUCCESS;
    pthread_mutex_lock(&lock);
    if (!find(current)) {
        error = no_context();
    } else if (!current->default_stream) {
        error = stream_create(&current->default_stream);
    }
    if (!error) {
        *ret_stream = current->default_stream;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

aclError context_create(uint32_t device, struct context **ret_context) {
    struct context *context = calloc(1, sizeof *context);
    if (!context) {
        return fail(ACL_ERROR_BAD_ALLOC, "no memory for a context");
    }
    context->device = device;
    pthread_mutex_lock(&lock);
    context->next = contexts;
    contexts = context;
    pthread_mutex_unlock(&lock);
    current = context;
    *ret_context = context;
    return ACL_SUCCESS;
}

aclError context_enter(struct context *context) {
    pthread_mutex_lock(&lock);
    bool is_there = context && find(context);
    pthread_mutex_unlock(&lock);
    if (!is_there) {
        return fail(ACL_ERROR_INVALID_PARAM, "there is no such context");
    }
    current = context;
    return ACL_SUCCESS;
}

aclError context_destroy(struct context *context) {
    pthread_mutex_lock(&lock);
    struct context **link = context ? find(context) : NULL;
    if (link) {
        *link = context->next;
    }
    pthread_mutex_unlock(&lock);
    if (!link) {
        return fail(ACL_ERROR_INVALID_PARAM, "there is no such context");
    }
    stream_free(context->default_stream);
    free(context);
    return ACL_SUCCESS;
}

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId) {
    if (!context) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtCreateContext: no place for the context");
    }
    aclError error = device_check(deviceId);
    if (error) {
        return error;
    }
    struct context *created = NULL;
    error = context_create((uint32_t)deviceId, &created);
    if (!error) {
        *context = created;
    }
    return error;
}

aclError aclrtDestroyContext(aclrtContext context) {
    return context_destroy(context);
}

aclError aclrtSetCurrentContext(aclrtContext context) {
    return context_enter(context);
}

aclError aclrtGetCurrentContext(aclrtContext *context) {
    uint32_t device = 0;
    if (!context) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtGetCurrentContext: no place for the context");
    }
    aclError error = context_device(&device);
    if (!error) {
        *context = current;
    }
    return error;
}
