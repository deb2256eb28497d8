/* Decimal numbers as integers of a chosen unit: a start of 16 digits and 3 decimals exceeds a double's precision. */
#ifndef OPSTREAM_SIM_DECIMAL_H
#define OPSTREAM_SIM_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

enum decimal_status {
    DECIMAL_OK = 0,
    DECIMAL_EMPTY = -1,
    DECIMAL_NEGATIVE = -2,
    DECIMAL_MALFORMED = -3,
    DECIMAL_TOO_LARGE = -4,
    DECIMAL_NOT_WHOLE = -5,
};

/* Reads `text` as a whole: digits, at most one point, nothing else. The value is multiplied by 10^decimals; digits beyond are cut off.
 * "12.3456" with 3 decimals is 12345; with 0 decimals a point is refused. Values over INT64_MAX are too large. */
int decimal_parse(const char *text, size_t length, unsigned decimals, uint64_t *ret_value);

/* "is not a number" and the like, to follow the number in a message. */
const char *decimal_complaint(int status);

#endif
