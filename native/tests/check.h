/* check.h: what a C test needs. A failed check prints its place and what it saw, and ends the program with 1; so does one in a child
 * process. */
#ifndef OPSTREAM_CHECK_H
#define OPSTREAM_CHECK_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* _exit: a test's own threads and the vendor's destructors must not turn a failed check into a hang. */
#define CHECK_FAIL(...)                                                                                                                    \
    do {                                                                                                                                   \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                                                                    \
        fprintf(stderr, __VA_ARGS__);                                                                                                      \
        fputc('\n', stderr);                                                                                                               \
        fflush(NULL);                                                                                                                      \
        _exit(1);                                                                                                                          \
    } while (0)

#define CHECK(condition)                                                                                                                   \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            CHECK_FAIL("%s", #condition);                                                                                                  \
        }                                                                                                                                  \
    } while (0)

#define CHECK_EQ_U64(a, b)                                                                                                                 \
    do {                                                                                                                                   \
        uint64_t check_a = (uint64_t)(a), check_b = (uint64_t)(b);                                                                         \
        if (check_a != check_b) {                                                                                                          \
            CHECK_FAIL("%s is %" PRIu64 ", %s is %" PRIu64, #a, check_a, #b, check_b);                                                     \
        }                                                                                                                                  \
    } while (0)

#define CHECK_EQ_INT(a, b)                                                                                                                 \
    do {                                                                                                                                   \
        int64_t check_a = (int64_t)(a), check_b = (int64_t)(b);                                                                            \
        if (check_a != check_b) {                                                                                                          \
            CHECK_FAIL("%s is %" PRId64 ", %s is %" PRId64, #a, check_a, #b, check_b);                                                     \
        }                                                                                                                                  \
    } while (0)

#define CHECK_EQ_STR(a, b)                                                                                                                 \
    do {                                                                                                                                   \
        const char *check_a = (a), *check_b = (b);                                                                                         \
        if (strcmp(check_a, check_b) != 0) {                                                                                               \
            CHECK_FAIL("%s is \"%s\", %s is \"%s\"", #a, check_a, #b, check_b);                                                            \
        }                                                                                                                                  \
    } while (0)

#endif
