#include "check.h"
#include "opstream.h"

static struct opstream_message hello(void) {
    struct opstream_message message = {
        .version = OPSTREAM_PROTOCOL_VERSION, .type = OPSTREAM_MESSAGE_HELLO, .kind = OPSTREAM_KIND_HOSTED, .segment_bytes = 20480000};
    memcpy(message.uuid, "0123456789abcdef", 16);
    strcpy(message.hosted_name, "r\xc3\xa9snet");
    memset(message.config_digest, 'd', sizeof(message.config_digest) - 1);
    return message;
}

static void check_round_trip(void) {
    struct opstream_message there = hello(), back;
    uint8_t bytes[OPSTREAM_MESSAGE_BYTES], again[OPSTREAM_MESSAGE_BYTES];
    CHECK_EQ_INT(opstream_message_encode(&there, bytes), 0);
    CHECK_EQ_INT(opstream_message_parse(bytes, sizeof(bytes), &back), 0);
    CHECK_EQ_INT(opstream_message_encode(&back, again), 0);
    CHECK(!memcmp(bytes, again, sizeof(bytes)));
    CHECK(!memcmp(back.uuid, there.uuid, sizeof(back.uuid)));
    CHECK_EQ_U64(back.segment_bytes, there.segment_bytes);
    CHECK_EQ_U64(back.kind, there.kind);
    CHECK_EQ_STR(back.hosted_name, there.hosted_name);
    CHECK_EQ_STR(back.config_digest, there.config_digest);

    struct opstream_message refuse = {
        .version = 1, .type = OPSTREAM_MESSAGE_REFUSE, .reason = OPSTREAM_E_UNSEALED, .text = "a seal is missing"};
    CHECK_EQ_INT(opstream_message_encode(&refuse, bytes), 0);
    CHECK_EQ_INT(opstream_message_parse(bytes, sizeof(bytes), &back), 0);
    CHECK_EQ_INT(back.reason, OPSTREAM_E_UNSEALED);
    CHECK_EQ_STR(back.text, "a seal is missing");
}

/* Two programs of different builds talk to each other: where a byte lies is part of the protocol. */
static void check_bytes(void) {
    struct opstream_message message = hello();
    uint8_t bytes[OPSTREAM_MESSAGE_BYTES];
    CHECK_EQ_INT(opstream_message_encode(&message, bytes), 0);
    CHECK(!memcmp(bytes,
                  "OPSM\1\0\1\0"
                  "0123456789abcdef"
                  "\2\0\0\0"
                  "\0\0\0\0"
                  "\0\x80\x38\1\0\0\0\0"
                  "r\xc3\xa9snet\0",
                  48));
    CHECK_EQ_U64(bytes[104], 'd');
    CHECK_EQ_U64(bytes[135], 'd');
    CHECK_EQ_U64(bytes[136], 0);
}

static int parse_status(const uint8_t *bytes, size_t length) {
    struct opstream_message message = {.type = 77};
    int status = opstream_message_parse(bytes, length, &message);
    CHECK(status == 0 || message.type == 77);
    return status;
}

static int status_with(size_t at, uint8_t byte) {
    struct opstream_message message = hello();
    uint8_t bytes[OPSTREAM_MESSAGE_BYTES];
    CHECK_EQ_INT(opstream_message_encode(&message, bytes), 0);
    bytes[at] = byte;
    return parse_status(bytes, sizeof(bytes));
}

static void check_refusals(void) {
    struct opstream_message message = hello();
    uint8_t bytes[OPSTREAM_MESSAGE_BYTES];
    CHECK_EQ_INT(opstream_message_encode(&message, bytes), 0);
    CHECK_EQ_INT(parse_status(bytes, 0), OPSTREAM_E_SIZE);
    CHECK_EQ_INT(parse_status(bytes, sizeof(bytes) - 1), OPSTREAM_E_SIZE);
    CHECK_EQ_INT(status_with(0, 'o'), OPSTREAM_E_MAGIC);
    CHECK_EQ_INT(status_with(136, 'd'), OPSTREAM_E_LAYOUT); /* no end */
    CHECK_EQ_INT(status_with(60, 'x'), OPSTREAM_E_LAYOUT);  /* something behind the end */
    CHECK_EQ_INT(status_with(41, 'x'), OPSTREAM_E_LAYOUT);  /* no character */
    CHECK_EQ_INT(status_with(255, 1), OPSTREAM_E_LAYOUT);   /* padding */
    CHECK_EQ_INT(status_with(6, 99), 0);                    /* an unknown type is for the caller to ignore */
    memset(message.text, 'x', sizeof(message.text));
    CHECK_EQ_INT(opstream_message_encode(&message, bytes), OPSTREAM_E_INVALID);
}

/* Of another version only that it is one is known. */
static void check_other_version(void) {
    struct opstream_message message = hello();
    uint8_t bytes[OPSTREAM_MESSAGE_BYTES];
    CHECK_EQ_INT(opstream_message_encode(&message, bytes), 0);
    bytes[4] = 2;
    memset(bytes + 8, 0xff, sizeof(bytes) - 8);
    CHECK_EQ_INT(opstream_message_parse(bytes, sizeof(bytes), &message), 0);
    CHECK_EQ_U64(message.version, 2);
    CHECK_EQ_U64(message.type, OPSTREAM_MESSAGE_HELLO);
    CHECK_EQ_U64(message.segment_bytes, 0);
}

int main(void) {
    check_round_trip();
    check_bytes();
    check_refusals();
    check_other_version();
    return 0;
}
