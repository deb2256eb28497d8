/* Collection into files: aclprofInit to aclprofFinalize. Checks and answers only. */
#include "acl/acl_prof.h"

#include "mode.h"
#include "sim.h"
#include "stamp.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PATH_BYTES 4095u
#define MAX_SETTING_BYTES 256u
#define STORAGE_LIMIT 1
#define LAST_SETTING 10
#define DATA_TYPES                                                                                                                         \
    (ACL_PROF_ACL_API | ACL_PROF_TASK_TIME | ACL_PROF_AICORE_METRICS | ACL_PROF_AICPU | ACL_PROF_L2CACHE | ACL_PROF_HCCL_TRACE |           \
     ACL_PROF_TRAINING_TRACE | ACL_PROF_MSPROFTX | ACL_PROF_RUNTIME_API | ACL_PROF_TASK_TIME_L0 | ACL_PROF_TASK_MEMORY | ACL_PROF_OP_ATTR)

struct aclprofConfig {
    uint64_t data_types;
};

/* STUCK: Start failed, or aclprofFinalize came without Stop; now Start does nothing until Stop is called. */
static enum { IDLE, RUNNING, STUCK } state; /* under mode_lock */
static uint64_t running_types;

static bool is_text_of(const char *text, size_t length, size_t max_bytes) {
    return text && length > 0 && length <= max_bytes && strnlen(text, length + 1) == length;
}

/* The answer that the mode forces on a call, or 0. */
static aclError conflict(void) {
    if (mode == MODE_COMMAND_LINE) {
        return ACL_ERROR_PROF_ALREADY_RUN;
    }
    return mode == MODE_SUBSCRIBED ? ACL_ERROR_PROF_API_CONFLICT : 0;
}

static aclError init(const char *path, size_t length) {
    aclError status = conflict();
    if (status) {
        return status;
    }
    if (mode == MODE_COLLECTING) {
        return ACL_ERROR_REPEAT_INITIALIZE;
    }
    if (!is_text_of(path, length, MAX_PATH_BYTES)) {
        return ACL_ERROR_INVALID_PARAM;
    }
    for (const char *c = path; *c; c++) {
        if (!isalnum((unsigned char)*c) && !strchr("/._-+:~", *c)) {
            return ACL_ERROR_INVALID_FILE;
        }
    }
    mode = MODE_COLLECTING;
    return 0;
}

aclError aclprofInit(const char *path, size_t length) {
    mode_called_too_early();
    pthread_mutex_lock(&mode_lock);
    aclError status = init(path, length);
    pthread_mutex_unlock(&mode_lock);
    return status;
}

aclError aclprofFinalize(void) {
    if (mode_called_too_early()) {
        return 0;
    }
    pthread_mutex_lock(&mode_lock);
    aclError status = conflict();
    if (mode == MODE_COLLECTING) {
        if (state == RUNNING) {
            state = STUCK;
        }
        stamp_lose_all();
        mode = MODE_OFF;
    }
    pthread_mutex_unlock(&mode_lock);
    return status;
}

/* The storage limit is a number of megabytes, all else words and numbers. */
static bool setting_takes(int type, const char *value) {
    if (type == STORAGE_LIMIT) {
        size_t digits = strspn(value, "0123456789");
        return digits > 0 && digits <= 10 && strcmp(value + digits, "MB") == 0;
    }
    for (; *value; value++) {
        if (!isalnum((unsigned char)*value) && !strchr("_-,.:", *value)) {
            return false;
        }
    }
    return true;
}

aclError aclprofSetConfig(int type, const char *config, size_t length) {
    if (mode_called_too_early()) {
        return 0;
    }
    pthread_mutex_lock(&mode_lock);
    bool command_line = mode == MODE_COMMAND_LINE;
    pthread_mutex_unlock(&mode_lock);
    if (command_line) {
        return ACL_ERROR_PROF_ALREADY_RUN;
    }
    if (type < STORAGE_LIMIT || type > LAST_SETTING || !is_text_of(config, length, MAX_SETTING_BYTES)) {
        return ACL_ERROR_INVALID_PARAM;
    }
    return setting_takes(type, config) ? 0 : ACL_ERROR_INVALID_PROFILING_CONFIG;
}

aclprofConfig *aclprofCreateConfig(uint32_t *deviceIds, uint32_t deviceNums, aclprofAicoreMetrics metrics,
                                   const aclprofAicoreEvents *events, uint64_t dataTypes) {
    mode_called_too_early();
    bool known = (int)metrics >= ACL_AICORE_ARITHMETIC_UTILIZATION && metrics <= ACL_AICORE_MEMORY_ACCESS;
    if (!deviceIds || deviceNums == 0 || deviceNums > sim_device_count() || events || (!known && metrics != ACL_AICORE_NONE)) {
        return NULL;
    }
    uint64_t seen = 0;
    for (uint32_t i = 0; i < deviceNums; i++) {
        if (deviceIds[i] >= sim_device_count() || seen >> deviceIds[i] & 1) {
            return NULL;
        }
        seen |= (uint64_t)1 << deviceIds[i];
    }
    aclprofConfig *config = malloc(sizeof *config);
    if (config) {
        config->data_types = dataTypes;
    }
    return config;
}

aclError aclprofDestroyConfig(const aclprofConfig *config) {
    mode_called_too_early();
    if (!config) {
        return ACL_ERROR_INVALID_PARAM;
    }
    free((void *)config);
    return 0;
}

/* What is wrong with starting, while collecting. */
static aclError start_error(const aclprofConfig *config) {
    if (config->data_types & ~DATA_TYPES) {
        return ACL_ERROR_PROF_MODULES_UNSUPPORTED;
    }
    if (config->data_types == 0) {
        return ACL_ERROR_INVALID_PARAM;
    }
    return 0;
}

static aclError start(const aclprofConfig *config) {
    aclError status = conflict();
    if (status) {
        return status;
    }
    if (!config) {
        return ACL_ERROR_INVALID_PARAM;
    }
    if (mode == MODE_OFF || state == STUCK) {
        return 0;
    }
    if (state == RUNNING) {
        return config->data_types == running_types ? 0 : ACL_ERROR_INVALID_PROFILING_CONFIG;
    }
    status = start_error(config);
    state = status ? STUCK : RUNNING;
    if (status == 0) {
        running_types = config->data_types;
        stamp_collect(running_types & ACL_PROF_MSPROFTX);
    }
    return status;
}

aclError aclprofStart(const aclprofConfig *config) {
    mode_called_too_early();
    pthread_mutex_lock(&mode_lock);
    aclError status = start(config);
    pthread_mutex_unlock(&mode_lock);
    return status;
}

static aclError stop(const aclprofConfig *config) {
    aclError status = conflict();
    if (status) {
        return status;
    }
    if (!config) {
        return ACL_ERROR_INVALID_PARAM;
    }
    if (mode == MODE_COLLECTING && config->data_types & ~DATA_TYPES) {
        return ACL_ERROR_PROF_MODULES_UNSUPPORTED;
    }
    if (state == RUNNING && config->data_types != running_types) {
        return ACL_ERROR_INVALID_PROFILING_CONFIG;
    }
    state = IDLE;
    stamp_collect(false);
    return 0;
}

aclError aclprofStop(const aclprofConfig *config) {
    if (mode_called_too_early()) {
        return 0;
    }
    pthread_mutex_lock(&mode_lock);
    aclError status = stop(config);
    pthread_mutex_unlock(&mode_lock);
    return status;
}
