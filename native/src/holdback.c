#include "holdback.h"

#include <stdlib.h>
#include <string.h>

#include "timeunit.h"

#define TEXT_BYTES ((size_t)TIMEUNIT_HELD_MAX * 256)

struct holdback {
    struct held_run runs[TIMEUNIT_HELD_MAX];
    uint32_t first, count;
    size_t text_used;
    uint64_t since_ns;
    char text[TEXT_BYTES];
};

/* Not cleared: pages that no run needs are never touched. */
int holdback_new(struct holdback **ret_holdback) {
    struct holdback *holdback = malloc(sizeof *holdback);
    if (holdback == NULL) {
        return OPSTREAM_E_MEMORY;
    }
    holdback->first = holdback->count = 0;
    holdback->text_used = 0;
    holdback->since_ns = 0;
    *ret_holdback = holdback;
    return OPSTREAM_OK;
}

void holdback_free(struct holdback *holdback) {
    free(holdback);
}

static const char *keep(struct holdback *holdback, const char *string, size_t length) {
    char *kept = holdback->text + holdback->text_used;
    memcpy(kept, string, length);
    kept[length] = '\0';
    holdback->text_used += length + 1;
    return kept;
}

bool holdback_push(struct holdback *holdback, const struct held_run *held) {
    size_t text_bytes = held->run.type_length + held->run.name_length + 2;
    if (holdback->first + holdback->count == TIMEUNIT_HELD_MAX || text_bytes > TEXT_BYTES - holdback->text_used) {
        return false;
    }
    if (holdback->count == 0) {
        holdback->since_ns = held->arrival_ns;
    }
    struct held_run *kept = &holdback->runs[holdback->first + holdback->count++];
    *kept = *held;
    kept->run.type = keep(holdback, held->run.type, held->run.type_length);
    kept->run.name = keep(holdback, held->run.name, held->run.name_length);
    return true;
}

bool holdback_pop(struct holdback *holdback, struct held_run *ret_held) {
    if (holdback->count == 0) {
        return false;
    }
    *ret_held = holdback->runs[holdback->first++];
    holdback->count--;
    return true;
}

uint64_t holdback_count(const struct holdback *holdback) {
    return holdback->count;
}

uint64_t holdback_since_ns(const struct holdback *holdback) {
    return holdback->since_ns;
}
