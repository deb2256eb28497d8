/* Expectations of a test program. One that isn't met is printed with its place, and the program ends with 1. */
#ifndef OPSTREAM_SIM_EXPECT_H
#define OPSTREAM_SIM_EXPECT_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                                                                  \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                                        \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

#define EXPECT_EQUAL(actual, wanted)                                                                                                       \
    do {                                                                                                                                   \
        int64_t actual_ = (int64_t)(actual);                                                                                               \
        int64_t wanted_ = (int64_t)(wanted);                                                                                               \
        if (actual_ != wanted_) {                                                                                                          \
            fprintf(stderr, "%s:%d: %s is %" PRId64 ", not %" PRId64 "\n", __FILE__, __LINE__, #actual, actual_, wanted_);                 \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

#define EXPECT_TEXT(actual, wanted)                                                                                                        \
    do {                                                                                                                                   \
        const char *actual_ = (actual);                                                                                                    \
        const char *wanted_ = (wanted);                                                                                                    \
        if (!actual_ || strcmp(actual_, wanted_) != 0) {                                                                                   \
            fprintf(stderr, "%s:%d: %s is\n%s\nnot\n%s\n", __FILE__, __LINE__, #actual, actual_ ? actual_ : "NULL", wanted_);              \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

#endif
