/* Bounds and cells, proved against whole numbers of any size. */
#include <math.h>

#include "check.h"
#include "histogram.h"
#include "segment.h"

/* Little-endian, 384 bits: room for the eighth power of the largest bound and more. */
struct big {
    uint32_t words[12];
};

static struct big big_times(struct big big, uint64_t factor) {
    struct big product = {{0}};
    for (int half = 0; half < 2; half++) {
        uint64_t f = (uint32_t)(factor >> (32 * half)), carry = 0;
        for (int i = 0; i + half < 12; i++) {
            carry += big.words[i] * f + product.words[i + half];
            product.words[i + half] = (uint32_t)carry;
            carry >>= 32;
        }
        CHECK_EQ_U64(carry, 0);
    }
    return product;
}

static struct big big_power(uint64_t base, int exponent) {
    struct big power = {{1}};
    while (exponent-- > 0) {
        power = big_times(power, base);
    }
    return power;
}

static int big_compare(struct big a, struct big b) {
    for (int i = 11; i >= 0; i--) {
        if (a.words[i] != b.words[i]) {
            return a.words[i] < b.words[i] ? -1 : 1;
        }
    }
    return 0;
}

/* ns compared with 2^(k/8) s, that is ns^8 with 2^k · 10^72; the power of two goes where it multiplies. */
static int compare_native(uint64_t ns, int k) {
    struct big left = big_power(ns, 8), right = big_power(10, 72);
    for (int i = 0; i < k; i++) {
        right = big_times(right, 2);
    }
    /* Once the left side is the larger one it stays so. */
    for (int i = 0; i > k && big_compare(left, right) <= 0; i--) {
        left = big_times(left, 2);
    }
    return big_compare(left, right);
}

/* Whether a float is 2^(k/8), but for the rounding of seven multiplications. */
static int is_native_float(double bound, int k) {
    double square = bound * bound, fourth = square * square, ratio = ldexp(fourth * fourth, -k);
    return ratio > 1 - 4e-15 && ratio < 1 + 4e-15;
}

static const uint64_t classic_first_ns = 100, native_count = 243;

static void check_table(void) {
    uint64_t classic = classic_first_ns;
    uint32_t cell = 0, classics = 0, natives = 0;
    int k = -186;
    for (; cell < OPSTREAM_CELLS - 1; cell++) {
        /* The next bound of the union: the smaller one of the next classic and the next native, both when they are equal. */
        uint64_t ns = histogram_bounds_ns[cell];
        int order = classics == OPSTREAM_CLASSIC_BOUNDS ? 1 : k > 56 ? -1 : compare_native(classic, k);
        int is_native = order >= 0, is_classic = order <= 0;
        if (is_native) {
            CHECK(compare_native(ns, k) <= 0);
            CHECK(compare_native(ns + 1, k) > 0);
            CHECK(is_native_float(opstream_cell_bound(cell), k));
            k++;
            natives++;
        }
        if (is_classic) {
            CHECK_EQ_U64(ns, classic);
            CHECK_EQ_U64(opstream_classic_bound_ns(classics), classic);
            CHECK_EQ_U64(opstream_classic_cell(classics), cell);
            CHECK(opstream_cell_bound(cell) == (double)classic / 1e9);
            classics++;
            classic = classics % 3 == 1 ? classic * 2 : classics % 3 == 2 ? classic / 2 * 5 : classic * 2;
        }
        CHECK(cell == 0 || opstream_cell_bound(cell - 1) < opstream_cell_bound(cell));
    }
    CHECK_EQ_U64(natives, native_count);
    CHECK_EQ_U64(classics, OPSTREAM_CLASSIC_BOUNDS);
    CHECK_EQ_U64(opstream_classic_bound_ns(OPSTREAM_CLASSIC_BOUNDS - 1), UINT64_C(100000000000));
    CHECK_EQ_U64(histogram_bounds_ns[cell], UINT64_MAX);
    CHECK(isinf(opstream_cell_bound(cell)));
    CHECK(isnan(opstream_cell_bound(OPSTREAM_CELLS)));
    CHECK_EQ_U64(opstream_classic_bound_ns(OPSTREAM_CLASSIC_BOUNDS), 0);
}

static uint32_t cell_by_scanning(uint64_t duration_ns) {
    uint32_t cell = 0;
    while (histogram_bounds_ns[cell] < duration_ns) {
        cell++;
    }
    return cell;
}

static void check_cells(void) {
    for (uint64_t ns = 0; ns < 100000; ns++) {
        CHECK_EQ_U64(opstream_cell_of(ns), cell_by_scanning(ns));
    }
    for (uint32_t cell = 0; cell < OPSTREAM_CELLS - 1; cell++) {
        for (uint64_t ns = histogram_bounds_ns[cell] - 1; ns <= histogram_bounds_ns[cell] + 1; ns++) {
            CHECK_EQ_U64(opstream_cell_of(ns), cell_by_scanning(ns));
        }
    }
    for (uint32_t bit = 0; bit < 64; bit++) {
        for (uint64_t eighth = 0; eighth < 8; eighth++) {
            uint64_t ns = (UINT64_C(1) << bit) + (bit >= 3 ? eighth << (bit - 3) : 0);
            CHECK_EQ_U64(opstream_cell_of(ns), cell_by_scanning(ns));
            CHECK_EQ_U64(opstream_cell_of(ns - 1), cell_by_scanning(ns - 1));
        }
    }
    CHECK_EQ_U64(opstream_cell_of(UINT64_MAX), OPSTREAM_CELLS - 1);
}

static void check_adding(void) {
    static struct segment_histogram histogram;
    histogram_add(&histogram, 100, 7);
    histogram_add(&histogram, 101, 8);
    histogram_add(&histogram, 129000000000, 9);
    CHECK_EQ_U64(cell_get(&histogram.created_wall_ns), 7);
    CHECK_EQ_U64(cell_get(&histogram.sum_ns), 129000000201);
    CHECK_EQ_U64(cell_get(&histogram.cells[0]), 1);
    CHECK_EQ_U64(cell_get(&histogram.cells[1]), 0); /* up to 100.2 ns: no whole nanosecond is in it */
    CHECK_EQ_U64(cell_get(&histogram.cells[2]), 1);
    CHECK_EQ_U64(cell_get(&histogram.cells[OPSTREAM_CELLS - 1]), 1);
}

int main(void) {
    check_table();
    check_cells();
    check_adding();
    return 0;
}
