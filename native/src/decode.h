/* decode.h: from a record's bytes to an operator's run. One per process, as the proof of the layout is the process's; reader thread
 * only. */
#ifndef OPSTREAM_DECODE_H
#define OPSTREAM_DECODE_H

#include <stdbool.h>

#include "vendor.h"

#define DECODE_TEXT_BYTES 4096u

/* A text as STRINGS keeps it: with its length it takes a multiple of 8 bytes, of which those behind the text, one at least, are 0. Shorter
 * than DECODE_TEXT_BYTES. */
struct kept_text {
    uint32_t length;
    char bytes[];
};

/* What the next record's texts are likely to be: to compare costs less than to measure and then to compare. */
struct text_guess {
    const struct kept_text *type, *name;
};

struct operator_run {
    uint32_t model_id;
    bool is_execution;       /* keypoint_op: the whole model's execution, not an operator */
    uint64_t start, end;     /* ticks of the device's clock: ns or µs, see timeunit.h */
    const char *type, *name; /* the guess's where it was right, else valid until the next call; '\0' after length bytes */
    size_t type_length, name_length;
};

enum decode_path { PATH_UNDECIDED = 0, PATH_PROVED = 1, PATH_GETTERS = 2 };

enum decode_result {
    DECODED = 0,
    DECODE_CORRUPT = 1, /* the vendor's checksum refuses it */
    DECODE_NAME = 2     /* type or name could not be had, twice; the other one is fetched all the same */
};

struct decoder;

int decoder_new(const struct vendor *vendor, size_t record_bytes, struct decoder **ret_decoder);
void decoder_free(struct decoder *decoder);
enum decode_result decoder_decode(struct decoder *decoder, const uint8_t *record, const struct text_guess *guess,
                                  struct operator_run *ret_run);
enum decode_path decoder_path(const struct decoder *decoder);

#endif
