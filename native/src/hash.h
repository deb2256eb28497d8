/* hash.h: a keyed hash of short texts for tables in private memory: who doesn't know the seed can't choose texts that meet in one place.
 * Values differ from process to process. */
#ifndef OPSTREAM_HASH_H
#define OPSTREAM_HASH_H

#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "opstream.h"

struct hash_seed {
    uint64_t a, b;
};

static inline int hash_seed_new(struct hash_seed *ret_seed) {
    return syscall(SYS_getrandom, ret_seed, sizeof(*ret_seed), 0) == sizeof(*ret_seed) ? 0 : OPSTREAM_E_SYSTEM;
}

static inline uint64_t hash_load_8(const char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return word;
}

static inline uint64_t hash_load_4(const char *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof(word));
    return word;
}

static inline uint64_t hash_fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Goes on from `hash`, the hash of what comes before. 16 bytes a multiplication; the last bytes are read twice rather than one by one. */
static inline uint64_t hash_text(struct hash_seed seed, uint64_t hash, const char *text, size_t length) {
    uint64_t a = 0, b = 0;
    hash ^= length;
    for (; length > 16; length -= 16, text += 16) {
        hash = hash_fold(hash_load_8(text) ^ seed.a, hash_load_8(text + 8) ^ seed.b ^ hash);
    }
    if (length >= 8) {
        a = hash_load_8(text);
        b = hash_load_8(text + length - 8);
    } else if (length >= 4) {
        a = hash_load_4(text);
        b = hash_load_4(text + length - 4);
    } else if (length > 0) {
        a = (uint64_t)(uint8_t)text[0] << 16 | (uint64_t)(uint8_t)text[length / 2] << 8 | (uint8_t)text[length - 1];
    }
    return hash_fold(a ^ seed.a, b ^ seed.b ^ hash);
}

#endif
