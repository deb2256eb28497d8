/* The text that a workload is read from, and where in it something is wrong. */
#ifndef OPSTREAM_SIM_SOURCE_H
#define OPSTREAM_SIM_SOURCE_H

#include "acl/acl.h"

struct source {
    const char *name; /* the path, or what stands for one; the caller's */
    const char *text; /* without the byte order mark, if there was one */
    const char *end;
    void *content; /* what source_close frees */
};

/* Reads a regular file into memory. ACL_ERROR_INVALID_FILE when that can't be done. */
aclError source_open(const char *path, struct source *ret_source);
void source_close(struct source *source);

/* Refers to the caller's memory; needs no source_close. */
struct source source_of_memory(const char *name, const void *text, size_t size);

/* Fails with ACL_ERROR_INVALID_FILE and "NAME:LINE:COLUMN: …" for the place `at` in the text. */
aclError source_fail(const struct source *source, const char *at, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same for a field that begins there: 'NAME:LINE:COLUMN: what: "field" complaint', with no more of the field than fits. */
aclError source_fail_field(const struct source *source, const char *at, size_t length, const char *what, const char *complaint);

#endif
