#include "model_name.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hash.h"
#include "label.h"

#define LENGTH_MAX (MODEL_NAME_BYTES - 1)
#define HASHED_BYTES ((size_t)16 << 20)

static bool is_number(const char *text, size_t length) {
    size_t start = length > 1 && text[0] == 'v' ? 1 : 0, digits = start;
    while (digits < length && ((text[digits] >= '0' && text[digits] <= '9') || (digits > start && text[digits] == '.'))) {
        digits++;
    }
    return digits == length;
}

static bool tells(const char *text, size_t length) {
    static const char *const generic[] = {"model", "models", "om", ".", ".."};
    for (size_t i = 0; i < sizeof generic / sizeof *generic; i++) {
        if (length == strlen(generic[i]) && memcmp(text, generic[i], length) == 0) {
            return false;
        }
    }
    return !is_number(text, length);
}

static void set(const char *text, size_t length, char *ret_name) {
    if (length > LENGTH_MAX) {
        length = label_cut(text, length, LENGTH_MAX, ret_name);
    } else {
        memcpy(ret_name, text, length);
    }
    ret_name[length] = '\0';
}

/* The last part of the path's first `length` bytes; returns its length. */
static size_t last_part(const char *path, size_t length, const char **ret_part) {
    while (length > 0 && path[length - 1] == '/') {
        length--;
    }
    size_t start = length;
    while (start > 0 && path[start - 1] != '/') {
        start--;
    }
    *ret_part = path + start;
    return length - start;
}

/* False when no folder says anything. */
static bool set_from_folders(const char *path, size_t length, char *ret_name) {
    const char *part;
    for (size_t bytes; (bytes = last_part(path, length, &part)) > 0; length = (size_t)(part - path)) {
        if (tells(part, bytes)) {
            set(part, bytes, ret_name);
            return true;
        }
    }
    return false;
}

void model_name_of_path(const char *path, char *ret_name) {
    const char *file;
    size_t length = last_part(path, strlen(path), &file);
    if (length > 3 && memcmp(file + length - 3, ".om", 3) == 0) {
        length -= 3;
    }
    if (length > 0 && tells(file, length)) {
        set(file, length, ret_name);
        return;
    }
    char folder[PATH_MAX];
    if (set_from_folders(path, (size_t)(file - path), ret_name) ||
        (path[0] != '/' && getcwd(folder, sizeof folder) && set_from_folders(folder, strlen(folder), ret_name))) {
        return;
    }
    set(length ? file : "model", length ? length : strlen("model"), ret_name);
}

void model_name_of_memory(const void *model, size_t bytes, char *ret_name) {
    static const struct hash_seed seed = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xc2b2ae3d27d4eb4f)}; /* for ever */
    size_t first = bytes < HASHED_BYTES ? bytes : HASHED_BYTES;
    size_t last = bytes - first < HASHED_BYTES ? bytes - first : HASHED_BYTES;
    uint64_t hash = hash_text(seed, bytes, model, first);
    hash = hash_text(seed, hash, (const char *)model + bytes - last, last);
    snprintf(ret_name, MODEL_NAME_BYTES, "model-%08x", (unsigned)(hash ^ hash >> 32));
}

void model_name_in_bundle(const char *bundle, size_t index, char *ret_name) {
    char suffix[32];
    int length = snprintf(suffix, sizeof suffix, "-%zu", index);
    size_t fits = label_fitting(bundle, strlen(bundle), LENGTH_MAX - (size_t)length);
    memmove(ret_name, bundle, fits);
    memcpy(ret_name + fits, suffix, (size_t)length + 1);
}
