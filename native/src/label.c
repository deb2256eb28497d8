#include "label.h"

#include <string.h>

size_t label_character(const char *bytes, size_t length) {
    const uint8_t *c = (const uint8_t *)bytes;
    if (c[0] < 0x80) {
        return c[0] ? 1 : 0;
    }
    size_t wanted = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    if (c[0] < 0xc2 || c[0] > 0xf4 || length < wanted) {
        return 0;
    }
    for (size_t i = 1; i < wanted; i++) {
        if ((c[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    /* Too long for what they say, surrogates, beyond U+10FFFF. */
    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) || (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f)) {
        return 0;
    }
    return wanted;
}

size_t label_fitting(const char *text, size_t length, size_t max) {
    if (length <= max) {
        return length;
    }
    size_t end = max;
    while (end > 0 && max - end < 3 && ((uint8_t)text[end] & 0xc0) == 0x80) {
        end--;
    }
    return end;
}

uint64_t label_hash(const char *text, size_t length) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

size_t label_cut(const char *text, size_t length, size_t max, char *ret_text) {
    static const char digits[] = "0123456789abcdef";
    if (length <= max) {
        memcpy(ret_text, text, length);
        return length;
    }
    size_t kept = label_fitting(text, length, max - LABEL_HASH_DIGITS);
    uint64_t hash = label_hash(text, length);
    memcpy(ret_text, text, kept);
    for (size_t i = 0; i < LABEL_HASH_DIGITS; i++) {
        ret_text[kept + i] = digits[hash >> (60 - 4 * i) & 15];
    }
    return kept + LABEL_HASH_DIGITS;
}
