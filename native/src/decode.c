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
#define CLEAR_BYTES 64u /* few stores, without a call, clear most strings */

typedef int text_getter(const void *info, size_t length, uint32_t index, char *text, size_t text_length);

struct text {
    size_t length;
    char bytes[LONG_TEXT_BYTES]; /* zero behind `length` */
};

struct decoder {
    const struct vendor *vendor;
    text_getter *get_type, *get_name;
    size_t record_bytes;
    enum decode_path path;
    uint32_t proofs;
    uint32_t unproved; /* records since the last proof */
    struct text type, name;
};

struct numbers {
    uint64_t model_id, start, end, duration;
};

int decoder_new(const struct vendor *vendor, size_t record_bytes, struct decoder **ret_decoder) {
    struct decoder *decoder = calloc(1, sizeof *decoder);
    if (decoder == NULL) {
        return OPSTREAM_E_MEMORY;
    }
    decoder->vendor = vendor;
    decoder->get_type = vendor->get_op_type;
    decoder->get_name = vendor->get_op_name;
    decoder->record_bytes = record_bytes;
    decoder->path = record_bytes == KNOWN_RECORD_BYTES ? PATH_UNDECIDED : PATH_GETTERS;
    *ret_decoder = decoder;
    return OPSTREAM_OK;
}

void decoder_free(struct decoder *decoder) {
    free(decoder);
}

enum decode_path decoder_path(const struct decoder *decoder) {
    return decoder->path;
}

static inline uint32_t load_u32(const void *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint64_t load_u64(const void *bytes) {
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

static void take_numbers(const struct numbers *numbers, struct operator_run *ret_run) {
    ret_run->model_id = (uint32_t)numbers->model_id;
    ret_run->start = numbers->start;
    ret_run->end = numbers->end;
}

/* Unless the layout is known not to be the one known: compares. The getters are right in any case. */
static __attribute__((noinline)) void ask_numbers(struct decoder *decoder, const uint8_t *record, struct operator_run *ret_run) {
    struct numbers asked = numbers_asked(decoder, record);
    if (decoder->path != PATH_GETTERS) {
        struct numbers read = numbers_of(record);
        decoder->unproved = 0;
        if (!numbers_equal(&read, &asked)) {
            decoder->path = PATH_GETTERS;
        } else if (decoder->path == PATH_UNDECIDED && ++decoder->proofs == PROOFS_NEEDED) {
            decoder->path = PATH_PROVED;
        }
    }
    take_numbers(&asked, ret_run);
}

/* Of a record that the vendor's checksum accepts. */
static inline void get_numbers(struct decoder *decoder, const uint8_t *record, struct operator_run *ret_run) {
    if (decoder->path == PATH_PROVED && ++decoder->unproved < RECORDS_PER_PROOF) {
        struct numbers read = numbers_of(record);
        take_numbers(&read, ret_run);
    } else {
        ask_numbers(decoder, record, ret_run);
    }
}

static __attribute__((noinline)) void clear_rest(struct text *text) {
    memset(text->bytes + CLEAR_BYTES, 0, text->length - CLEAR_BYTES);
}

/* The getter writes the string and the last byte of the buffer, nothing between them: what the string before left has to be cleared. */
static inline int ask_text(const struct decoder *decoder, text_getter *getter, const uint8_t *record, struct text *text,
                           size_t text_bytes) {
    memset(text->bytes, 0, CLEAR_BYTES);
    if (text->length > CLEAR_BYTES) {
        clear_rest(text);
    }
    return getter(record, decoder->record_bytes, 0, text->bytes, text_bytes);
}

/* A string that is too long for the buffer is refused like anything else, so the second try has room for any. */
static __attribute__((noinline, cold)) bool fetch_again(const struct decoder *decoder, text_getter *getter, const uint8_t *record,
                                                        struct text *text) {
    text->length = strlen(text->bytes);
    return ask_text(decoder, getter, record, text, LONG_TEXT_BYTES) == 0;
}

/* Both with their NUL. Most types are so short that the two words, which are 0 behind the text, are compared faster than a function is
 * called. */
static inline bool text_is_kept(const struct text *text, const struct kept_text *kept) {
    if (kept->length < sizeof(uint32_t)) {
        return load_u32(text->bytes) == load_u32(kept->bytes);
    }
    if (kept->length < sizeof(uint32_t) + sizeof(uint64_t)) {
        return load_u32(text->bytes) == load_u32(kept->bytes) && load_u64(text->bytes + 4) == load_u64(kept->bytes + 4);
    }
    return memcmp(text->bytes, kept->bytes, kept->length + 1) == 0;
}

/* Where the text is that was got, and its length. */
static inline const char *look_at(struct text *text, const struct kept_text *guess) {
    if (text_is_kept(text, guess)) {
        text->length = guess->length;
        return guess->bytes;
    }
    text->length = strlen(text->bytes);
    return text->bytes;
}

static inline bool fetch(const struct decoder *decoder, text_getter *const *getter, const uint8_t *record, struct text *text) {
    return ask_text(decoder, *getter, record, text, DECODE_TEXT_BYTES) == 0 || fetch_again(decoder, *getter, record, text);
}

static inline bool text_is(const struct text *text, const char *string, size_t length) {
    return text->length == length && memcmp(text->bytes, string, length) == 0;
}

/* What the vendor's checksum thinks of a record without its strings. */
static __attribute__((noinline, cold)) enum decode_result judge(const struct decoder *decoder, const uint8_t *record) {
    uint32_t number = 0;
    return decoder->vendor->get_op_num(record, decoder->record_bytes, &number) == 0 ? DECODE_NAME : DECODE_CORRUPT;
}

enum decode_result decoder_decode(struct decoder *decoder, const uint8_t *record, const struct text_guess *guess,
                                  struct operator_run *ret_run) {
    bool has_type = fetch(decoder, &decoder->get_type, record, &decoder->type);
    ret_run->type = look_at(&decoder->type, guess->type);
    ret_run->type_length = decoder->type.length;
    bool has_name = fetch(decoder, &decoder->get_name, record, &decoder->name);
    ret_run->name = look_at(&decoder->name, guess->name);
    ret_run->name_length = decoder->name.length;
    if (!has_type || !has_name) {
        return judge(decoder, record);
    }
    get_numbers(decoder, record, ret_run);
    ret_run->is_execution = text_is(&decoder->name, "keypoint_op", 11) && text_is(&decoder->type, "na", 2);
    return DECODED;
}
