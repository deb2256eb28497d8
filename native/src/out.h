/* out.h: text that grows. Room is reserved by whoever begins a line; what then writes into it neither checks nor fails. */
#ifndef OPSTREAM_OUT_H
#define OPSTREAM_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OUT_NUMBER_BYTES 32u /* 20 digits, a point and nine more are the longest */

/* Begins as zeros; `bytes` is freed by its owner. */
struct out {
    char *bytes;
    size_t length, capacity;
};

/* Room for so many bytes more; false: no memory, and everything is as it was. */
bool out_reserve(struct out *out, size_t bytes);

static inline void out_put(struct out *out, const char *bytes, size_t length) {
    memcpy(out->bytes + out->length, bytes, length);
    out->length += length;
}

static inline void out_text(struct out *out, const char *text) {
    out_put(out, text, strlen(text));
}

/* In decimal. */
void out_number(struct out *out, uint64_t number);

/* Nanoseconds as seconds, exactly, without more zeros than a decimal needs: 0.001234567, 2.0. */
void out_seconds(struct out *out, uint64_t ns);

/* As a label's value: at most twice as long. */
void out_escaped(struct out *out, const char *text);

#endif
