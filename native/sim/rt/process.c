#include "process.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "failure.h"
#include "settings.h"

enum { FRESH, INITIALISED, FINALISED };

static _Atomic int state = FRESH;
static const struct sim_profiler *_Atomic profiler;

aclError aclInit(const char *configPath) {
    if (settings()->complaint[0]) {
        return fail(ACL_ERROR_INVALID_PARAM, "%s", settings()->complaint);
    }
    if (configPath && configPath[0]) {
        FILE *file = fopen(configPath, "re");
        if (!file) {
            return fail(ACL_ERROR_INVALID_FILE, "%s: %s", configPath, strerror(errno));
        }
        fclose(file);
    }
    if (atomic_exchange(&state, INITIALISED) == INITIALISED) {
        return fail(ACL_ERROR_REPEAT_INITIALIZE, "aclInit has been called already");
    }
    return ACL_SUCCESS;
}

aclError aclFinalize(void) {
    int expected = INITIALISED;
    if (atomic_compare_exchange_strong(&state, &expected, FINALISED)) {
        return ACL_SUCCESS;
    }
    return expected == FINALISED ? fail(ACL_ERROR_REPEAT_FINALIZE, "aclFinalize has been called already")
                                 : fail(ACL_ERROR_UNINITIALIZE, "aclFinalize without aclInit");
}

bool sim_initialised(void) {
    return atomic_load(&state) == INITIALISED;
}

void sim_attach_profiler(const struct sim_profiler *table) {
    atomic_store(&profiler, table);
}

const struct sim_profiler *process_profiler(void) {
    return atomic_load_explicit(&profiler, memory_order_acquire);
}
