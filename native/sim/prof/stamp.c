#include "stamp.h"

#include "acl/acl_prof.h"

#include "mode.h"

#include <string.h>

#define SLOTS 100u
#define MAX_MESSAGE_BYTES 126u
#define STACK_DEPTH 1024u
#define STAMP_ERROR (-1)

struct stamp {
    bool live;
    bool lost;
    char message[MAX_MESSAGE_BYTES + 1];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stamp stamps[SLOTS];
static bool ranges[SLOTS]; /* ids that were started once */
static unsigned depth;     /* of the one stack that the process has */
static bool collecting;

void stamp_collect(bool on) {
    pthread_mutex_lock(&lock);
    collecting = on;
    pthread_mutex_unlock(&lock);
}

void stamp_lose_all(void) {
    pthread_mutex_lock(&lock);
    collecting = false;
    depth = 0;
    for (unsigned i = 0; i < SLOTS; i++) {
        stamps[i].lost |= stamps[i].live;
        stamps[i].live = false;
    }
    pthread_mutex_unlock(&lock);
}

/* Locks, and returns the live stamp that `pointer` is; NULL, unlocked, when it is none. */
static struct stamp *lock_stamp(void *pointer) {
    mode_called_too_early();
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < SLOTS; i++) {
        if (pointer == &stamps[i] && stamps[i].live) {
            return pointer;
        }
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

void *aclprofCreateStamp(void) {
    mode_called_too_early();
    struct stamp *stamp = NULL;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; collecting && !stamp && i < SLOTS; i++) {
        if (!stamps[i].live && !stamps[i].lost) {
            stamp = &stamps[i];
        }
    }
    if (stamp) {
        *stamp = (struct stamp){.live = true};
    }
    pthread_mutex_unlock(&lock);
    return stamp;
}

void aclprofDestroyStamp(void *pointer) {
    struct stamp *stamp = lock_stamp(pointer);
    if (!stamp) {
        return;
    }
    stamp->live = false;
    pthread_mutex_unlock(&lock);
}

aclError aclprofSetStampTraceMessage(void *pointer, const char *message, uint32_t length) {
    if (!message || length > MAX_MESSAGE_BYTES) {
        return STAMP_ERROR;
    }
    struct stamp *stamp = lock_stamp(pointer);
    if (!stamp) {
        return STAMP_ERROR;
    }
    memcpy(stamp->message, message, length);
    stamp->message[length] = '\0';
    pthread_mutex_unlock(&lock);
    return 0;
}

aclError aclprofMark(void *pointer) {
    if (!lock_stamp(pointer)) {
        return STAMP_ERROR;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

aclError aclprofPush(void *pointer) {
    if (!pointer) {
        return ACL_ERROR_INVALID_PARAM;
    }
    if (!lock_stamp(pointer)) {
        return STAMP_ERROR;
    }
    bool room = depth < STACK_DEPTH;
    depth += room;
    pthread_mutex_unlock(&lock);
    return room ? 0 : STAMP_ERROR;
}

aclError aclprofPop(void) {
    mode_called_too_early();
    pthread_mutex_lock(&lock);
    bool any = depth > 0;
    depth -= any;
    pthread_mutex_unlock(&lock);
    return any ? 0 : STAMP_ERROR;
}

aclError aclprofRangeStart(void *pointer, uint32_t *rangeId) {
    if (!pointer || !rangeId) {
        return ACL_ERROR_INVALID_PARAM;
    }
    struct stamp *stamp = lock_stamp(pointer);
    if (!stamp) {
        return STAMP_ERROR;
    }
    uint32_t id = (uint32_t)(stamp - stamps);
    ranges[id] = true;
    pthread_mutex_unlock(&lock);
    *rangeId = id;
    return 0;
}

aclError aclprofRangeStop(uint32_t rangeId) {
    mode_called_too_early();
    pthread_mutex_lock(&lock);
    bool known = rangeId < SLOTS && ranges[rangeId];
    pthread_mutex_unlock(&lock);
    return known ? 0 : STAMP_ERROR;
}

aclError aclprofMarkEx(const char *message, size_t length, aclrtStream stream) {
    mode_called_too_early();
    (void)stream;
    if (!message || length == 0 || length > MAX_MESSAGE_BYTES || strnlen(message, length + 1) != length) {
        return STAMP_ERROR;
    }
    pthread_mutex_lock(&lock);
    bool on = collecting;
    pthread_mutex_unlock(&lock);
    return on ? 0 : STAMP_ERROR;
}
