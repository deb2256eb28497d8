#include "check.h"
#include "label.h"

static void check_characters(void) {
    static const char *const whole[] = {
        "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
    /* Alone, cut short, longer than need be, a surrogate, beyond the last one. */
    static const char *const none[] = {
        "\x80", "\xc3", "\xc3(", "\xc1\xbf", "\xe2\x82", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xff"};
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        CHECK_EQ_U64(label_character(whole[i], strlen(whole[i])), strlen(whole[i]));
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        CHECK_EQ_U64(label_character(none[i], strlen(none[i])), 0);
    }
    CHECK_EQ_U64(label_character("", 1), 0);
}

static void check_fitting(void) {
    const char *text = "a\xe2\x82\xac";
    CHECK_EQ_U64(label_fitting(text, 4, 4), 4);
    CHECK_EQ_U64(label_fitting(text, 4, 3), 1);
    CHECK_EQ_U64(label_fitting(text, 4, 2), 1);
    CHECK_EQ_U64(label_fitting(text, 4, 0), 0);
    CHECK_EQ_U64(label_fitting("\x80\x80\x80\x80\x80\x80", 6, 5), 2); /* no text at all: not cut down to nothing */
}

/* The hash is a contract: series of another version, and of other programs, must meet. */
static void check_hash(void) {
    CHECK_EQ_U64(label_hash("", 0), UINT64_C(0xcbf29ce484222325));
    CHECK_EQ_U64(label_hash("foobar", 6), UINT64_C(0x85944171f73967e8));
}

static void check_cut(void) {
    char cut[32] = "";
    CHECK_EQ_U64(label_cut("0123456789abcdefgh", 18, 18, cut), 18);
    CHECK_EQ_U64(label_cut("0123456789abcdefgh", 18, 17, cut), 17);
    CHECK(cut[0] == '0' && strspn(cut + 1, "0123456789abcdef") >= 16);
    CHECK_EQ_U64(label_cut("\xe2\x82\xac_foobar_foobar_foobar", 24, 18, cut), 16);
}

int main(void) {
    check_characters();
    check_fitting();
    check_hash();
    check_cut();
    return 0;
}
