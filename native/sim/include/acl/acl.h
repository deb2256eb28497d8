/* The entry header of AscendCL, as applications include it. Here it belongs to the simulator: names and values are those of the public API
 * reference, the words are this project's. */
#ifndef OPSTREAM_SIM_ACL_H
#define OPSTREAM_SIM_ACL_H

#include "acl_base.h"
#include "acl_mdl.h"
#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Once per process, before anything else. `configPath` names a JSON file, or is NULL or "" for none; the simulator only asks that it can be
 * read. Refuses a malformed OPSTREAM_SIM_SPEED, OPSTREAM_SIM_DEVICES or OPSTREAM_SIM_CLOCK_OFFSET_NS with ACL_ERROR_INVALID_PARAM. */
aclError aclInit(const char *configPath);
aclError aclFinalize(void);

/* What the calling thread's last failure was about, or NULL. The text is the thread's, valid until its next call that fails; a second call
 * without a failure in between answers NULL. */
const char *aclGetRecentErrMsg(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
