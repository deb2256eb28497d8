#include "failure.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char text[1024];
static _Thread_local bool is_recent;

aclError fail(aclError code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    is_recent = true;
    return code;
}

const char *aclGetRecentErrMsg(void) {
    bool was_recent = is_recent;
    is_recent = false;
    return was_recent ? text : NULL;
}
