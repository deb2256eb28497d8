#include "out.h"

#include <stdlib.h>
#include <sys/mman.h>

#define BYTES_FIRST ((size_t)256 << 10)
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

bool out_reserve(struct out *out, size_t bytes) {
    if (bytes <= out->capacity - out->length) {
        return true;
    }
    size_t capacity = out->capacity ? 2 * out->capacity : BYTES_FIRST;
    if (capacity - out->length < bytes) {
        capacity = out->length + bytes;
    }
    char *larger = realloc(out->bytes, capacity);
    if (!larger) {
        return false;
    }
    out->bytes = larger;
    out->capacity = capacity;
    /* A large text is written once into fresh memory: in small pages that takes longer than composing it. */
    if (capacity >= HUGE_PAGE_BYTES) {
        char *first = (char *)(((uintptr_t)larger + HUGE_PAGE_BYTES - 1) & ~(uintptr_t)(HUGE_PAGE_BYTES - 1));
        madvise(first, (size_t)(larger + capacity - first) & ~(HUGE_PAGE_BYTES - 1), MADV_HUGEPAGE);
    }
    return true;
}

static const char digit_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566"
    "676869707172737475767778798081828384858687888990919293949596979899";

void out_number(struct out *out, uint64_t number) {
    char digits[20];
    size_t at = sizeof(digits);
    for (; number >= 100; number /= 100) {
        memcpy(digits + (at -= 2), digit_pairs + number % 100 * 2, 2);
    }
    if (number >= 10) {
        memcpy(digits + (at -= 2), digit_pairs + number * 2, 2);
    } else {
        digits[--at] = (char)('0' + number);
    }
    out_put(out, digits + at, sizeof(digits) - at);
}

void out_seconds(struct out *out, uint64_t ns) {
    char digits[9];
    uint64_t fraction = ns % 1000000000;
    size_t length = sizeof(digits);
    for (size_t at = sizeof(digits); at-- > 0; fraction /= 10) {
        digits[at] = (char)('0' + fraction % 10);
    }
    while (length > 1 && digits[length - 1] == '0') {
        length--;
    }
    out_number(out, ns / 1000000000);
    out_put(out, ".", 1);
    out_put(out, digits, length);
}

void out_escaped(struct out *out, const char *text) {
    for (;;) {
        size_t plain = strcspn(text, "\\\"\n");
        out_put(out, text, plain);
        text += plain;
        if (!*text) {
            return;
        }
        out_put(out, *text == '\n' ? "\\n" : *text == '"' ? "\\\"" : "\\\\", 2);
        text++;
    }
}
