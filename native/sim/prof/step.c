/* Steps: the start and the end of an iteration on a stream. They work in every mode. */
#include "acl/acl_prof.h"

#include "mode.h"

#include <pthread.h>
#include <stdlib.h>

struct aclprofStepInfo {
    pthread_mutex_t lock;
    bool had[2]; /* by tag */
};

aclprofStepInfo *aclprofCreateStepInfo(void) {
    mode_called_too_early();
    aclprofStepInfo *step = calloc(1, sizeof *step);
    if (step) {
        pthread_mutex_init(&step->lock, NULL);
    }
    return step;
}

void aclprofDestroyStepInfo(aclprofStepInfo *stepInfo) {
    mode_called_too_early();
    if (!stepInfo) {
        return;
    }
    pthread_mutex_destroy(&stepInfo->lock);
    free(stepInfo);
}

aclError aclprofGetStepTimestamp(aclprofStepInfo *stepInfo, aclprofStepTag tag, aclrtStream stream) {
    mode_called_too_early();
    (void)stream;
    if (!stepInfo || (tag != ACL_STEP_START && tag != ACL_STEP_END)) {
        return ACL_ERROR_INVALID_PARAM;
    }
    pthread_mutex_lock(&stepInfo->lock);
    bool again = stepInfo->had[tag];
    stepInfo->had[tag] = true;
    pthread_mutex_unlock(&stepInfo->lock);
    return again ? ACL_ERROR_INVALID_PARAM : 0;
}
