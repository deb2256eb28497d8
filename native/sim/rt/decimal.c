#include "decimal.h"

#include <stdbool.h>

int decimal_parse(const char *text, size_t length, unsigned decimals, uint64_t *ret_value) {
    uint64_t value = 0;
    unsigned missing = decimals;
    bool is_fraction = false;
    bool has_digit = false;

    if (length == 0) {
        return DECIMAL_EMPTY;
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '.' && !is_fraction) {
            if (decimals == 0) {
                return DECIMAL_NOT_WHOLE;
            }
            is_fraction = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9') {
            return text[0] == '-' && length > 1 ? DECIMAL_NEGATIVE : DECIMAL_MALFORMED;
        }
        has_digit = true;
        if (is_fraction && missing == 0) {
            continue;
        }
        missing -= is_fraction;
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value)) {
            return DECIMAL_TOO_LARGE;
        }
    }
    if (!has_digit) {
        return DECIMAL_MALFORMED;
    }
    for (; missing > 0; missing--) {
        if (__builtin_mul_overflow(value, 10, &value)) {
            return DECIMAL_TOO_LARGE;
        }
    }
    if (value > INT64_MAX) {
        return DECIMAL_TOO_LARGE;
    }
    *ret_value = value;
    return DECIMAL_OK;
}

const char *decimal_complaint(int status) {
    switch (status) {
    case DECIMAL_EMPTY:
        return "is empty";
    case DECIMAL_NEGATIVE:
        return "is negative";
    case DECIMAL_TOO_LARGE:
        return "is too large";
    case DECIMAL_NOT_WHOLE:
        return "is not a whole number";
    default:
        return "is not a number";
    }
}
