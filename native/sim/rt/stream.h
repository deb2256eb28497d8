/* Streams: queues of work, each with a thread of its own that does it in order. */
#ifndef OPSTREAM_SIM_STREAM_H
#define OPSTREAM_SIM_STREAM_H

#include "acl/acl.h"

struct stream;

/* Any thread. */
aclError stream_create(struct stream **ret_stream);

/* Waits until the stream is empty and ends its thread. Not from a task of its own. */
void stream_free(struct stream *stream);

/* Has the stream call `task(argument)` after all that was added before. Does not block. */
aclError stream_add(struct stream *stream, void (*task)(void *argument), void *argument);

/* The stream meant by a handle: NULL is the default one of the calling thread's context. */
aclError stream_of_handle(aclrtStream handle, struct stream **ret_stream);

#endif
