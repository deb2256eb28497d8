#include <stdbool.h>
#include <string.h>

#include "label.h"
#include "opstream.h"

/* What lies where in a packet. Numbers are little-endian; a text is followed by zeros up to its field's end, so that a message has one
 * encoding only; so is the last field. */
enum message_offset {
    AT_MAGIC = 0,
    AT_VERSION = 4,
    AT_TYPE = 6,
    AT_UUID = 8,
    AT_KIND = 24,
    AT_REASON = 28,
    AT_SEGMENT_BYTES = 32,
    AT_HOSTED_NAME = 40,
    AT_CONFIG_DIGEST = 104,
    AT_TEXT = 137,
    AT_END = 233
};

#define MAGIC UINT64_C(0x4d53504f) /* "OPSM" */

static void put_number(uint8_t *to, uint64_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(number >> (8 * i));
    }
}

static uint64_t get_number(const uint8_t *from, size_t bytes) {
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++) {
        number |= (uint64_t)from[i] << (8 * i);
    }
    return number;
}

/* Whether a field of `size` bytes holds a text with an end; its length. */
static bool is_text(const char *field, size_t size, size_t *ret_length) {
    const char *end = memchr(field, 0, size);
    if (!end) {
        return false;
    }
    size_t length = (size_t)(end - field), step;
    for (size_t i = 0; i < length; i += step) {
        step = label_character(field + i, length - i);
        if (!step) {
            return false;
        }
    }
    *ret_length = length;
    return true;
}

static bool put_text(uint8_t *to, const char *field, size_t size) {
    size_t length;
    if (!is_text(field, size, &length)) {
        return false;
    }
    memcpy(to, field, length);
    return true;
}

static bool are_zeros(const uint8_t *bytes, size_t length) {
    uint8_t any = 0;
    for (size_t i = 0; i < length; i++) {
        any |= bytes[i];
    }
    return !any;
}

static bool get_text(const uint8_t *from, size_t size, char *ret_field) {
    size_t length;
    if (!is_text((const char *)from, size, &length) || !are_zeros(from + length, size - length)) {
        return false;
    }
    memcpy(ret_field, from, size);
    return true;
}

int opstream_message_encode(const struct opstream_message *message, uint8_t *ret_bytes) {
    uint8_t bytes[OPSTREAM_MESSAGE_BYTES] = {0};
    put_number(bytes + AT_MAGIC, MAGIC, 4);
    put_number(bytes + AT_VERSION, message->version, 2);
    put_number(bytes + AT_TYPE, message->type, 2);
    memcpy(bytes + AT_UUID, message->uuid, sizeof(message->uuid));
    put_number(bytes + AT_KIND, message->kind, 4);
    put_number(bytes + AT_REASON, (uint32_t)message->reason, 4);
    put_number(bytes + AT_SEGMENT_BYTES, message->segment_bytes, 8);
    if (!put_text(bytes + AT_HOSTED_NAME, message->hosted_name, sizeof(message->hosted_name)) ||
        !put_text(bytes + AT_CONFIG_DIGEST, message->config_digest, sizeof(message->config_digest)) ||
        !put_text(bytes + AT_TEXT, message->text, sizeof(message->text))) {
        return OPSTREAM_E_INVALID;
    }
    memcpy(ret_bytes, bytes, sizeof(bytes));
    return 0;
}

int opstream_message_parse(const uint8_t *bytes, size_t length, struct opstream_message *ret_message) {
    if (length != OPSTREAM_MESSAGE_BYTES) {
        return OPSTREAM_E_SIZE;
    }
    if (get_number(bytes + AT_MAGIC, 4) != MAGIC) {
        return OPSTREAM_E_MAGIC;
    }
    struct opstream_message message = {0};
    message.version = (uint16_t)get_number(bytes + AT_VERSION, 2);
    message.type = (uint16_t)get_number(bytes + AT_TYPE, 2);
    /* Of another version nothing more is known. */
    if (message.version == OPSTREAM_PROTOCOL_VERSION) {
        memcpy(message.uuid, bytes + AT_UUID, sizeof(message.uuid));
        message.kind = (uint32_t)get_number(bytes + AT_KIND, 4);
        message.reason = (int32_t)(uint32_t)get_number(bytes + AT_REASON, 4);
        message.segment_bytes = get_number(bytes + AT_SEGMENT_BYTES, 8);
        if (!get_text(bytes + AT_HOSTED_NAME, sizeof(message.hosted_name), message.hosted_name) ||
            !get_text(bytes + AT_CONFIG_DIGEST, sizeof(message.config_digest), message.config_digest) ||
            !get_text(bytes + AT_TEXT, sizeof(message.text), message.text) || !are_zeros(bytes + AT_END, OPSTREAM_MESSAGE_BYTES - AT_END)) {
            return OPSTREAM_E_LAYOUT;
        }
    }
    *ret_message = message;
    return 0;
}
