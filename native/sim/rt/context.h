/* Contexts: a device as a thread sees it. */
#ifndef OPSTREAM_SIM_CONTEXT_H
#define OPSTREAM_SIM_CONTEXT_H

#include "acl/acl.h"

struct context;
struct stream;

/* The device of the calling thread's context; ACL_ERROR_RT_CONTEXT_NULL when it has none. */
aclError context_device(uint32_t *ret_device);

/* The default stream of the calling thread's context, made at its first use. */
aclError context_default_stream(struct stream **ret_stream);

/* Makes a context and makes it the calling thread's. */
aclError context_create(uint32_t device, struct context **ret_context);

/* Makes it the calling thread's; ACL_ERROR_INVALID_PARAM when there is no such context. */
aclError context_enter(struct context *context);

/* Ends its default stream (waits until that is empty). ACL_ERROR_INVALID_PARAM when there is no such context. */
aclError context_destroy(struct context *context);

#endif
