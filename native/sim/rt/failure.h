/* What the calling thread's last failure was about, in words. */
#ifndef OPSTREAM_SIM_FAILURE_H
#define OPSTREAM_SIM_FAILURE_H

#include "acl/acl.h"

/* Keeps the text for aclGetRecentErrMsg and returns `code`, so that a failing function can end with `return fail(…)`. */
aclError fail(aclError code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
