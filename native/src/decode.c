#include "decode.h"

#include <stdlib.h>
#include <string.h>

/* The one layout known. It isn't published, so it is proved by the getters before it is relied on. */
#define KNOWN_RECORD_BYTES 80u
#define MODEL_ID_OFFSET 4u
#define DURATION_OFFSET 24u
#define START_OFFSET 32u
#define END_OFFSET 40u

#define PROOFS_NEEDED 64u
#define RECORDS_PER_PROOF 1024u

#define LONG_TEXT_BYTES 65536u
#define CLEAR_BYTES 64u                /* few stores, without a call, clear most strings */

struct text {
    char *bytes;                       /* LONG_TEXT_BYTES + CLEAR_BYTES, zero behind `length` */
    size_t length;
};

struct decoder {
    const struct vendor *vendor;
    size_t record_bytes;
    enum decode_path path;
    uint32_t proofs;
    uint32_t unproved;                 /* records since the last proof */
    struct text type, name;
};

struct numbers {
    uint64_t model_id, start, end, duration;
};

typedef int text_getter(const void *info, size_t length, uint32_t index, char *text, size_t text_length);

int decoder_new(const struct vendor *vendor, size_t record_bytes, struct decoder **ret_decoder) {
    struct decoder *decoder = calloc(1, sizeof *decoder);
    if (decoder == NULL) {
        return OPSTREAM_E_MEMORY;
    }
    decoder->vendor = vendor;
    decoder->record_bytes = record_bytes;
    decoder->path = record_bytes == KNOWN_RECORD_BYTES ? PATH_UNDECIDED : PATH_GETTERS;
    decoder->type.bytes = calloc(1, LONG_TEXT_BYTES + CLEAR_BYTES);
    decoder->name.bytes = calloc(1, LONG_TEXT_BYTES + CLEAR_BYTES);
    if (decoder->type.bytes == NULL || decoder->name.bytes == NULL) {
        decoder_free(decoder);
        return OPSTREAM_E_MEMORY;
    }
    *ret_decoder = decoder;
    return OPSTREAM_OK;
}

void decoder_free(struct decoder *decoder) {
    if (decoder != NULL) {
        free(decoder->type.bytes);
        free(decoder->name.bytes);
        free(decoder);
    }
}

enum decode_path decoder_path(const struct decoder *decoder) {
    return decoder->path;
}

static uint32_t load_u32(const uint8_t *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint64_t load_u64(const uint8_t *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static struct numbers numbers_of(const uint8_t *record) {
    return (struct numbers){
        .model_id = load_u32(record + MODEL_ID_OFFSET),
        .start = load_u64(record + START_OFFSET),
        .end = load_u64(record + END_OFFSET),
        .duration = load_u64(record + DURATION_OFFSET),
    };
}

static struct numbers numbers_asked(const struct decoder *decoder, const uint8_t *record) {
    const struct vendor *vendor = decoder->vendor;
    return (struct numbers){
        .model_id = vendor->get_model_id(record, decoder->record_bytes, 0),
        .start = vendor->get_op_start(record, decoder->record_bytes, 0),
        .end = vendor->get_op_end(record, decoder->record_bytes, 0),
        .duration = vendor->get_op_duration(record, decoder->record_bytes, 0),
    };
}

static bool numbers_equal(const struct numbers *a, const struct numbers *b) {
    return a->model_id == b->model_id && a->start == b->start && a->end == b->end && a->duration == b->duration;
}

static __attribute__((noinline)) struct numbers prove(struct decoder *decoder, const uint8_t *record) {
    struct numbers read = numbers_of(record);
    struct numbers asked = numbers_asked(decoder, record);
    decoder->unproved = 0;
    if (!numbers_equal(&read, &asked)) {
        decoder->path = PATH_GETTERS;
    } else if (decoder->path == PATH_UNDECIDED && ++decoder->proofs == PROOFS_NEEDED) {
        decoder->path = PATH_PROVED;
    }
    return asked;
}

/* Of a record that the vendor's checksum accepts. */
static struct numbers numbers_got(struct decoder *decoder, const uint8_t *record) {
    if (decoder->path == PATH_GETTERS) {
        return numbers_asked(decoder, record);
    }
    if (decoder->path == PATH_UNDECIDED || ++decoder->unproved == RECORDS_PER_PROOF) {
        return prove(decoder, record);
    }
    return numbers_of(record);
}

/* The getter writes the string and the last byte of the buffer, nothing between them: what the string before left has to be cleared. */
static inline int ask_text(const struct decoder *decoder, text_getter *getter, const uint8_t *record, struct text *text,
                           size_t text_bytes) {
    char *bytes = text->bytes;
    for (const char *end = bytes + text->length; bytes < end; bytes += CLEAR_BYTES) {
        memset(bytes, 0, CLEAR_BYTES);
    }
    int acl_error = getter(record, decoder->record_bytes, 0, text->bytes, text_bytes);
    text->length = strlen(text->bytes);
    return acl_error;
}

/* A string that is too long for the buffer is refused like anything else, so the second try has room for any. */
static __attribute__((noinline, cold)) bool fetch_again(const struct decoder *decoder, text_getter *getter, const uint8_t *record,
                                                        struct text *text) {
    return ask_text(decoder, getter, record, text, LONG_TEXT_BYTES) == 0;
}

static inline bool fetch(const struct decoder *decoder, text_getter *getter, const uint8_t *record, struct text *text) {
    return ask_text(decoder, getter, record, text, DECODE_TEXT_BYTES) == 0 || fetch_again(decoder, getter, record, text);
}

static bool text_is(const struct text *text, const char *string, size_t length) {
    return text->length == length && memcmp(text->bytes, string, length) == 0;
}

enum decode_result decoder_decode(struct decoder *decoder, const uint8_t *record, struct operator_run *ret_run) {
    bool has_type = fetch(decoder, decoder->vendor->get_op_type, record, &decoder->type);
    bool has_name = fetch(decoder, decoder->vendor->get_op_name, record, &decoder->name);
    if (!has_type || !has_name) {
        uint32_t number = 0;
        return decoder->vendor->get_op_num(record, decoder->record_bytes, &number) == 0 ? DECODE_NAME : DECODE_CORRUPT;
    }
    struct numbers numbers = numbers_got(decoder, record);
    ret_run->model_id = (uint32_t)numbers.model_id;
    ret_run->start = numbers.start;
    ret_run->end = numbers.end;
    ret_run->type = decoder->type.bytes;
    ret_run->type_length = decoder->type.length;
    ret_run->name = decoder->name.bytes;
    ret_run->name_length = decoder->name.length;
    ret_run->is_execution = text_is(&decoder->name, "keypoint_op", 11) && text_is(&decoder->type, "na", 2);
    return DECODED;
}
