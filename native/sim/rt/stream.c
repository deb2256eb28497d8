#include "stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "failure.h"

struct task {
    struct task *next;
    void (*call)(void *argument);
    void *argument;
};

struct stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct task *first; /* the one being done stays first until it is done */
    struct task **end;
    bool is_ending;
};

static void *work(void *argument) {
    struct stream *stream = argument;
    pthread_mutex_lock(&stream->lock);
    while (stream->first || !stream->is_ending) {
        struct task *task = stream->first;
        if (!task) {
            pthread_cond_wait(&stream->changed, &stream->lock);
            continue;
        }
        pthread_mutex_unlock(&stream->lock);
        task->call(task->argument);
        pthread_mutex_lock(&stream->lock);
        stream->first = task->next;
        if (!stream->first) {
            stream->end = &stream->first;
            pthread_cond_broadcast(&stream->changed);
        }
        free(task);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

aclError stream_create(struct stream **ret_stream) {
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        return fail(ACL_ERROR_BAD_ALLOC, "no memory for a stream");
    }
    stream->end = &stream->first;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    int error = pthread_create(&stream->thread, NULL, work, stream);
    if (error) {
        pthread_cond_destroy(&stream->changed);
        pthread_mutex_destroy(&stream->lock);
        free(stream);
        return fail(ACL_ERROR_RT_FAILURE, "no thread for a stream: %s", strerror(error));
    }
    *ret_stream = stream;
    return ACL_SUCCESS;
}

void stream_free(struct stream *stream) {
    if (!stream) {
        return;
    }
    pthread_mutex_lock(&stream->lock);
    stream->is_ending = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

aclError stream_add(struct stream *stream, void (*call)(void *argument), void *argument) {
    struct task *task = malloc(sizeof *task);
    if (!task) {
        return fail(ACL_ERROR_BAD_ALLOC, "no memory for a stream's task");
    }
    *task = (struct task){.call = call, .argument = argument};
    pthread_mutex_lock(&stream->lock);
    *stream->end = task;
    stream->end = &task->next;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return ACL_SUCCESS;
}

aclError stream_of_handle(aclrtStream handle, struct stream **ret_stream) {
    if (!handle) {
        return context_default_stream(ret_stream);
    }
    *ret_stream = handle;
    return ACL_SUCCESS;
}

aclError aclrtCreateStream(aclrtStream *stream) {
    uint32_t device = 0;
    aclError error = context_device(&device);
    if (error) {
        return error;
    }
    if (!stream) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtCreateStream: no place for the stream");
    }
    struct stream *created = NULL;
    error = stream_create(&created);
    if (!error) {
        *stream = created;
    }
    return error;
}

aclError aclrtDestroyStream(aclrtStream stream) {
    if (!stream) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtDestroyStream: no stream");
    }
    stream_free(stream);
    return ACL_SUCCESS;
}

aclError aclrtSynchronizeStream(aclrtStream handle) {
    struct stream *stream = NULL;
    aclError error = stream_of_handle(handle, &stream);
    if (error) {
        return error;
    }
    pthread_mutex_lock(&stream->lock);
    while (stream->first) {
        pthread_cond_wait(&stream->changed, &stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
    return ACL_SUCCESS;
}
