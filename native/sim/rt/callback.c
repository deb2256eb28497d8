/* Callbacks in streams. The stream posts them; the thread subscribed to it runs them, inside aclrtProcessReport. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "failure.h"
#include "stream.h"

struct subscription {
    struct subscription *next;
    struct stream *stream;
    uint64_t thread;
};

struct report {
    struct report *next;
    uint64_t thread;
    aclrtCallback call;
    void *user_data;
    bool is_blocking;
    bool is_done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct subscription *subscriptions;
static struct report *reports; /* posted, oldest first */

static struct subscription **find(const struct stream *stream) {
    struct subscription **link = &subscriptions;
    while (*link && (*link)->stream != stream) {
        link = &(*link)->next;
    }
    return link;
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream handle) {
    struct stream *stream = NULL;
    aclError error = stream_of_handle(handle, &stream);
    if (error) {
        return error;
    }
    struct subscription *subscription = malloc(sizeof *subscription);
    if (!subscription) {
        return fail(ACL_ERROR_BAD_ALLOC, "no memory for a subscription");
    }
    *subscription = (struct subscription){.stream = stream, .thread = threadId};
    pthread_mutex_lock(&lock);
    struct subscription **link = find(stream);
    if (*link) {
        error = fail(ACL_ERROR_REPEAT_SUBSCRIBE, "a thread is subscribed to this stream's callbacks already");
    } else {
        *link = subscription;
    }
    pthread_mutex_unlock(&lock);
    if (error) {
        free(subscription);
    }
    return error;
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream handle) {
    struct stream *stream = NULL;
    aclError error = stream_of_handle(handle, &stream);
    if (error) {
        return error;
    }
    pthread_mutex_lock(&lock);
    struct subscription **link = find(stream);
    struct subscription *ended = *link && (*link)->thread == threadId ? *link : NULL;
    if (ended) {
        *link = ended->next;
    }
    pthread_mutex_unlock(&lock);
    free(ended);
    return ended ? ACL_SUCCESS : fail(ACL_ERROR_THREAD_NOT_SUBSCRIBE, "this thread is not subscribed to this stream's callbacks");
}

/* In the stream's thread. */
static void post(void *argument) {
    struct report *report = argument;
    bool is_blocking = report->is_blocking; /* a report that isn't is gone once it is posted */
    pthread_mutex_lock(&lock);
    struct report **link = &reports;
    while (*link) {
        link = &(*link)->next;
    }
    *link = report;
    pthread_cond_broadcast(&changed);
    while (is_blocking && !report->is_done) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    if (is_blocking) {
        free(report);
    }
}

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType, aclrtStream handle) {
    struct stream *stream = NULL;
    if (!fn) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtLaunchCallback: no function");
    }
    aclError error = stream_of_handle(handle, &stream);
    if (error) {
        return error;
    }
    pthread_mutex_lock(&lock);
    struct subscription *subscription = *find(stream);
    uint64_t thread = subscription ? subscription->thread : 0;
    pthread_mutex_unlock(&lock);
    if (!subscription) {
        return fail(ACL_ERROR_STREAM_NOT_SUBSCRIBE, "no thread is subscribed to this stream's callbacks");
    }
    struct report *report = malloc(sizeof *report);
    if (!report) {
        return fail(ACL_ERROR_BAD_ALLOC, "no memory for a callback");
    }
    *report = (struct report){.thread = thread, .call = fn, .user_data = userData, .is_blocking = blockType == ACL_CALLBACK_BLOCK};
    error = stream_add(stream, post, report);
    if (error) {
        free(report);
    }
    return error;
}

/* The oldest report for the thread, taken out; under the lock. */
static struct report *take(uint64_t thread) {
    struct report **link = &reports;
    while (*link && (*link)->thread != thread) {
        link = &(*link)->next;
    }
    struct report *report = *link;
    if (report) {
        *link = report->next;
        report->next = NULL;
    }
    return report;
}

aclError aclrtProcessReport(int32_t timeout) {
    uint64_t self = (uint64_t)pthread_self();
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += timeout / 1000;
    until.tv_nsec += (long)(timeout % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec += 1;
        until.tv_nsec -= 1000000000;
    }

    int waited = 0;
    struct report *report;
    pthread_mutex_lock(&lock);
    while (!(report = take(self)) && waited != ETIMEDOUT) {
        waited = timeout < 0 ? pthread_cond_wait(&changed, &lock) : pthread_cond_timedwait(&changed, &lock, &until);
    }
    if (!report) {
        pthread_mutex_unlock(&lock);
        return fail(ACL_ERROR_WAIT_CALLBACK_TIMEOUT, "no callback within %d ms", timeout);
    }
    for (; report; report = take(self)) {
        pthread_mutex_unlock(&lock);
        report->call(report->user_data);
        pthread_mutex_lock(&lock);
        if (report->is_blocking) {
            report->is_done = true;
            pthread_cond_broadcast(&changed);
        } else {
            free(report);
        }
    }
    pthread_mutex_unlock(&lock);
    return ACL_SUCCESS;
}
