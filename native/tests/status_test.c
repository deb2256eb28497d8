#include "check.h"
#include "opstream.h"

int main(void) {
    CHECK_EQ_STR(opstream_status_name(OPSTREAM_OK), "ok");
    CHECK_EQ_STR(opstream_status_name(OPSTREAM_E_FULL), "full");
    CHECK_EQ_STR(opstream_status_name(OPSTREAM_E_NOT_MEMFD), "not_memfd");
    CHECK_EQ_STR(opstream_status_name(OPSTREAM_E_LAYOUT), "layout");
    CHECK_EQ_STR(opstream_status_name(-9), "unknown");
    CHECK_EQ_STR(opstream_status_name(1), "unknown");
    /* Each status has a name of its own. */
    for (int a = OPSTREAM_E_LAYOUT; a <= OPSTREAM_OK; a++) {
        for (int b = OPSTREAM_E_LAYOUT; b < a; b++) {
            const char *name = opstream_status_name(a);
            CHECK(strcmp(name, opstream_status_name(b)) != 0 || strcmp(name, "unknown") == 0);
        }
    }
    CHECK_EQ_STR(opstream_acl_error_name(148047), "ACL_ERROR_PROF_API_CONFLICT");
    CHECK_EQ_STR(opstream_acl_error_name(200007), "ACL_ERROR_PROF_MODULES_UNSUPPORTED");
    CHECK_EQ_STR(opstream_acl_error_name(0), "");
    CHECK_EQ_STR(opstream_acl_error_name(-1), "");
    return 0;
}
