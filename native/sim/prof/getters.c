/* Reading records. Nothing is remembered from one call to the next: each verifies all that it is given. */
#include "acl/acl_prof.h"

#include "fault.h"
#include "journal.h"
#include "mode.h"
#include "names.h"
#include "record.h"

#include <stdlib.h>
#include <time.h>

#define CRASHING_INDEX 0x1000000u /* the real one reads wherever a huge index leads it */

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Every getter that verifies lies between these two, so that a benchmark can tell its own cost from the profiler's. */
static uint64_t enter(void) {
    fault_getter();
    return now_ns();
}

static void leave(uint64_t entered_ns) {
    journal_add(JOURNAL_GETTER_CALLS, 1);
    journal_add(JOURNAL_GETTER_NS, now_ns() - entered_ns);
}

/* The number of records; 0 when one is corrupt or the length isn't a multiple of theirs. */
static uint32_t verify(const void *info, size_t len) {
    size_t bytes = record_bytes();
    if (!info || len % bytes != 0) {
        return 0;
    }
    size_t count = len / bytes;
    for (size_t i = 0; i < count; i++) {
        if (!record_valid((const uint8_t *)info + i * bytes)) {
            return 0;
        }
    }
    return (uint32_t)count;
}

static aclError fetch(const void *info, size_t len, uint32_t index, struct record *ret_record) {
    uint64_t entered_ns = enter();
    if (index >= CRASHING_INDEX) {
        abort();
    }
    aclError status = ACL_ERROR_INVALID_PARAM;
    if (index < verify(info, len)) {
        record_unpack((const uint8_t *)info + index * record_bytes(), ret_record);
        status = 0;
    }
    leave(entered_ns);
    return status;
}

aclError aclprofGetOpDescSize(size_t *size) {
    if (mode_called_too_early()) {
        return 0;
    }
    if (!size) {
        return ACL_ERROR_INVALID_PARAM;
    }
    *size = record_bytes();
    return 0;
}

aclError aclprofGetOpNum(const void *info, size_t len, uint32_t *number) {
    if (mode_called_too_early()) {
        return 0;
    }
    uint64_t entered_ns = enter();
    uint32_t count = number ? verify(info, len) : 0;
    leave(entered_ns);
    if (count == 0) {
        return ACL_ERROR_INVALID_PARAM;
    }
    *number = count;
    return 0;
}

static aclError text_length(const void *info, size_t len, uint32_t index, enum names_text which, size_t *length) {
    if (mode_called_too_early()) {
        return 0;
    }
    struct record record;
    aclError status = length ? fetch(info, len, index, &record) : ACL_ERROR_INVALID_PARAM;
    return status ? status : names_length(record.name_index, which, length);
}

/* A vendor that is slow to find a string. */
static void be_slow(void) {
    uint64_t delay_ns = fault_time_ns(FAULT_GETTER_DELAY);
    if (delay_ns == 0) {
        return;
    }
    uint64_t entered_ns = now_ns();
    struct timespec left = {(time_t)(delay_ns / 1000000000u), (long)(delay_ns % 1000000000u)};
    while (nanosleep(&left, &left) != 0)
        ;
    journal_add(JOURNAL_GETTER_NS, now_ns() - entered_ns);
}

static aclError text(const void *info, size_t len, uint32_t index, enum names_text which, char *to, size_t to_bytes) {
    if (mode_called_too_early()) {
        return 0;
    }
    be_slow();
    struct record record;
    aclError status = to ? fetch(info, len, index, &record) : ACL_ERROR_INVALID_PARAM;
    return status ? status : names_take(record.name_index, which, to, to_bytes);
}

aclError aclprofGetOpTypeLen(const void *info, size_t len, uint32_t index, size_t *length) {
    return text_length(info, len, index, NAMES_TYPE, length);
}

aclError aclprofGetOpNameLen(const void *info, size_t len, uint32_t index, size_t *length) {
    return text_length(info, len, index, NAMES_NAME, length);
}

aclError aclprofGetOpType(const void *info, size_t len, uint32_t index, char *textOut, size_t textLen) {
    return text(info, len, index, NAMES_TYPE, textOut, textLen);
}

aclError aclprofGetOpName(const void *info, size_t len, uint32_t index, char *textOut, size_t textLen) {
    return text(info, len, index, NAMES_NAME, textOut, textLen);
}

uint64_t aclprofGetOpStart(const void *info, size_t len, uint32_t index) {
    struct record record;
    return mode_called_too_early() || fetch(info, len, index, &record) ? 0 : record.start;
}

uint64_t aclprofGetOpEnd(const void *info, size_t len, uint32_t index) {
    struct record record;
    return mode_called_too_early() || fetch(info, len, index, &record) ? 0 : record.end;
}

uint64_t aclprofGetOpDuration(const void *info, size_t len, uint32_t index) {
    struct record record;
    return mode_called_too_early() || fetch(info, len, index, &record) ? 0 : record.duration;
}

size_t aclprofGetModelId(const void *info, size_t len, uint32_t index) {
    if (mode_called_too_early()) {
        return 0;
    }
    struct record record;
    aclError status = fetch(info, len, index, &record);
    return status ? (size_t)status : record.model_id;
}

/* The one getter that verifies nothing. */
aclprofSubscribeOpFlag aclprofGetOpFlag(const void *info, size_t len, uint32_t index) {
    if (mode_called_too_early()) {
        return ACL_SUBSCRIBE_OP;
    }
    size_t bytes = record_bytes();
    if (!info || (index + (uint64_t)1) * bytes > len) {
        return ACL_SUBSCRIBE_NONE;
    }
    return (aclprofSubscribeOpFlag)record_flag((const uint8_t *)info + index * bytes);
}

const char *aclprofGetOpAttriValue(const void *info, size_t len, uint32_t index, aclprofSubscribeOpAttri attribute) {
    mode_called_too_early();
    (void)info, (void)len, (void)index, (void)attribute;
    return NULL;
}
