#include "back_off.h"

#include "check.h"

static uint64_t now_ns = 5 * CLOCK_SECOND_NS;

static uint64_t next_pause_s(struct back_off *back_off) {
    uint64_t pause_ns = back_off_begin(back_off, now_ns) - now_ns;
    now_ns += pause_ns;
    back_off_end(back_off, now_ns);
    return pause_ns / CLOCK_SECOND_NS;
}

int main(void) {
    static const uint64_t pauses_s[] = {1, 2, 4, 8, 16, 32, 60, 60};
    struct back_off back_off = {0};
    for (size_t i = 0; i < sizeof pauses_s / sizeof *pauses_s; i++) {
        CHECK_EQ_U64(next_pause_s(&back_off), pauses_s[i]);
        now_ns += BACK_OFF_MAX_NS; /* not yet calm */
    }
    now_ns += 1;
    CHECK_EQ_U64(next_pause_s(&back_off), 1);
    CHECK_EQ_U64(next_pause_s(&back_off), 2);
    return 0;
}
