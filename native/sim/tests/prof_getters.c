/* What the getters answer, what they consume, and what they refuse. */
#include "prof_case.h"

#define OPERATORS 3u /* and the key point */

/* The records of one execution, unsubscribed since. */
static uint32_t one_execution(uint8_t *ret_records) {
    CHECK(aclInit(NULL) == 0);
    uint32_t model = load_model(2, OPERATORS);
    struct stream stream = open_stream();
    CHECK(subscribe(model, stream) == 0);
    execute(model);
    read_bytes(stream.read_fd, ret_records, (OPERATORS + 1) * RECORD);
    CHECK(aclprofModelUnSubscribe(model) == 0);
    return model;
}

static void check_texts(const uint8_t *records, uint32_t index, const char *type, const char *name) {
    size_t len = (OPERATORS + 1) * RECORD, bytes;
    char text[64] = {0};
    CHECK(aclprofGetOpTypeLen(records, len, index, &bytes) == 0 && bytes == strlen(type) + 1);
    CHECK(aclprofGetOpType(records, len, index, text, sizeof text) == 0 && strcmp(text, type) == 0);
    memset(text, 0, sizeof text);
    CHECK(aclprofGetOpNameLen(records, len, index, &bytes) == 0 && bytes == strlen(name) + 1);
    CHECK(aclprofGetOpName(records, len, index, text, sizeof text) == 0 && strcmp(text, name) == 0);
}

static void answers(void) {
    uint8_t records[(OPERATORS + 1) * RECORD];
    size_t len = sizeof records, size;
    uint32_t model = one_execution(records), number;
    CHECK(aclprofGetOpDescSize(&size) == 0 && size == RECORD);
    CHECK(aclprofGetOpNum(records, len, &number) == 0 && number == OPERATORS + 1);
    CHECK(aclprofGetOpNum(records, RECORD, &number) == 0 && number == 1);
    for (uint32_t i = 0; i <= OPERATORS; i++) {
        CHECK(aclprofGetModelId(records, len, i) == model);
        uint64_t start = aclprofGetOpStart(records, len, i), end = aclprofGetOpEnd(records, len, i);
        CHECK(start > 0 && end >= start && aclprofGetOpDuration(records, len, i) == end - start);
        CHECK(aclprofGetOpFlag(records, len, i) == ACL_SUBSCRIBE_OP);
        CHECK(aclprofGetOpAttriValue(records, len, i, ACL_SUBSCRIBE_ATTRI_THREADID) == NULL);
    }
    CHECK(aclprofGetOpDuration(records, len, 0) == 1000);
    CHECK(aclprofGetOpStart(records, len, OPERATORS) <= aclprofGetOpStart(records, len, 0));
    check_texts(records, 1, "Conv2D", "layer/1");
    check_texts(records, 0, "Conv2D", "layer/0");
    check_texts(records, OPERATORS, "na", "keypoint_op");
    CHECK(journal_value("keypoints_made") == 1 && journal_value("records_made") == OPERATORS + 1);
}

static uint32_t crc32c(const uint8_t *bytes, size_t count) {
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t bit = 0; bit < count * 8; bit++) {
        crc = (crc >> 1) ^ (((crc ^ bytes[bit / 8] >> bit % 8) & 1) ? 0x82F63B78u : 0);
    }
    return crc;
}

static uint64_t field(const uint8_t *record, unsigned offset, unsigned bytes) {
    uint64_t value = 0;
    memcpy(&value, record + offset, bytes);
    return value;
}

static void layout(void) {
    uint8_t records[(OPERATORS + 1) * RECORD];
    uint32_t model = one_execution(records);
    uint64_t last_name = 0;
    for (const uint8_t *record = records; record < records + sizeof records; record += RECORD) {
        CHECK(field(record, 0, 4) == crc32c(record + 4, RECORD - 4));
        CHECK(field(record, 4, 4) == model && field(record, 8, 4) == 0 && field(record, 72, 4) == 2);
        CHECK(field(record, 12, 4) == (uint64_t)gettid());
        CHECK(field(record, 16, 8) > last_name);
        last_name = field(record, 16, 8);
        CHECK(field(record, 24, 8) == aclprofGetOpDuration(record, RECORD, 0));
        CHECK(field(record, 32, 8) == aclprofGetOpStart(record, RECORD, 0));
        CHECK(field(record, 40, 8) == aclprofGetOpEnd(record, RECORD, 0));
    }
}

static void consumed_once(void) {
    uint8_t records[(OPERATORS + 1) * RECORD];
    one_execution(records);
    char text[64] = {0};
    size_t bytes;
    CHECK(aclprofGetOpName(records, RECORD, 0, text, sizeof text) == 0);
    CHECK(aclprofGetOpName(records, RECORD, 0, text, sizeof text) == 100000);
    CHECK(aclprofGetOpNameLen(records, RECORD, 0, &bytes) == 100000);
    CHECK(aclprofGetOpType(records, RECORD, 0, text, sizeof text) == 0);
    CHECK(aclprofGetOpType(records, RECORD, 0, text, sizeof text) == 100000);
    CHECK(aclprofGetOpTypeLen(records, RECORD, 0, &bytes) == 100000);
    CHECK(aclprofGetOpDuration(records, RECORD, 0) == 1000);
    CHECK(journal_value("strings_made") == 2 * (OPERATORS + 1) && journal_value("strings_read") == 2);
}

/* Unread strings outlive the subscription, however many come and go in between. */
static void unread_stay(void) {
    uint8_t records[(OPERATORS + 1) * RECORD];
    uint32_t model = one_execution(records);
    struct stream stream = open_stream();
    CHECK(subscribe(model, stream) == 0);
    for (unsigned i = 0; i < 3000; i++) {
        uint8_t others[(OPERATORS + 1) * RECORD];
        char text[64] = {0};
        execute(model);
        read_bytes(stream.read_fd, others, sizeof others);
        CHECK(aclprofGetOpName(others + RECORD, RECORD, 0, text, sizeof text) == 0 && strcmp(text, "layer/1") == 0);
        if (i % 2) {
            CHECK(aclprofGetOpType(others + RECORD, RECORD, 0, text, sizeof text) == 0);
        }
    }
    CHECK(aclprofModelUnSubscribe(model) == 0);
    CHECK(journal_value("strings_made") == 3001 * 2 * (OPERATORS + 1) && journal_value("strings_read") == 4500);
    for (uint32_t i = 0; i < OPERATORS; i++) {
        char name[16];
        snprintf(name, sizeof name, "layer/%u", i);
        check_texts(records, i, "Conv2D", name);
    }
}

static void buffers(void) {
    uint8_t records[(OPERATORS + 1) * RECORD];
    one_execution(records);
    char text[16];
    memset(text, '#', sizeof text);
    CHECK(aclprofGetOpType(records, RECORD, 0, text, 0) == 100000);
    CHECK(aclprofGetOpType(records, RECORD, 0, text, 5) == 100000);
    CHECK(aclprofGetOpType(records, RECORD, 0, NULL, 16) == 100000);
    CHECK(memcmp(text, "################", 16) == 0);
    CHECK(aclprofGetOpType(records, RECORD, 0, text, 6) == 0);
    CHECK(memcmp(text, "Conv2\0##########", 16) == 0);
    CHECK(aclprofGetOpType(records, RECORD, 0, text, sizeof text) == 100000);
    CHECK(aclprofGetOpType(records + RECORD, RECORD, 0, text, sizeof text) == 0);
    CHECK(memcmp(text, "Conv2D#########", 16) == 0);
}

static void check_refused(const uint8_t *records, size_t len, uint32_t index) {
    char text[64] = {0};
    size_t bytes;
    CHECK(aclprofGetOpTypeLen(records, len, index, &bytes) == 100000);
    CHECK(aclprofGetOpNameLen(records, len, index, &bytes) == 100000);
    CHECK(aclprofGetOpType(records, len, index, text, sizeof text) == 100000);
    CHECK(aclprofGetOpName(records, len, index, text, sizeof text) == 100000);
    CHECK(aclprofGetOpStart(records, len, index) == 0 && aclprofGetOpEnd(records, len, index) == 0);
    CHECK(aclprofGetOpDuration(records, len, index) == 0 && aclprofGetModelId(records, len, index) == 100000);
}

static void refusals(void) {
    uint8_t records[(OPERATORS + 1) * RECORD];
    uint32_t number;
    one_execution(records);
    size_t len = sizeof records;
    check_refused(records, len, OPERATORS + 1);
    check_refused(records, len - 1, 0);
    check_refused(records, 0, 0);
    check_refused(NULL, len, 0);
    CHECK(aclprofGetOpNum(records, len - 1, &number) == 100000);
    for (unsigned bit = 0; bit < RECORD * 8; bit += 37) {
        records[2 * RECORD + bit / 8] ^= 1u << bit % 8;
        check_refused(records, len, 0);
        CHECK(aclprofGetOpNum(records, len, &number) == 100000);
        CHECK(aclprofGetOpFlag(records, len, 0) == ACL_SUBSCRIBE_OP);
        records[2 * RECORD + bit / 8] ^= 1u << bit % 8;
    }
    check_texts(records, 0, "Conv2D", "layer/0");
}

static void huge_index(void) {
    uint8_t records[(OPERATORS + 1) * RECORD];
    one_execution(records);
    aclprofGetOpDuration(records, sizeof records, UINT32_MAX);
}

static void before_init(void) {
    size_t size = 12345;
    CHECK(aclprofGetOpDescSize(&size) == 0 && size == 12345);
    uint8_t records[(OPERATORS + 1) * RECORD];
    one_execution(records);
    char text[16] = "untouched";
    uint32_t number = 77;
    CHECK(aclprofGetOpNum(records, sizeof records, &number) == 0 && number == 77);
    CHECK(aclprofGetOpName(records, sizeof records, 0, text, sizeof text) == 0 && strcmp(text, "untouched") == 0);
    CHECK(aclprofGetOpDuration(records, sizeof records, 0) == 0);
    CHECK(aclprofSetConfig(-5, NULL, 0) == 0 && aclprofStop(NULL) == 0 && aclprofFinalize() == 0);
    CHECK(aclprofStart(NULL) == 100000);
    CHECK(journal_value("strings_read") == 0);
}

static const struct prof_case cases[] = {
    {.name = "answers", .run = answers},
    {.name = "layout", .run = layout},
    {.name = "consumed_once", .run = consumed_once},
    {.name = "unread_stay", .run = unread_stay},
    {.name = "buffers", .run = buffers},
    {.name = "refusals", .run = refusals},
    {.name = "huge_index", .run = huge_index, .end = ENDS_CRASHED},
    {.name = "before_init", .run = before_init},
};

RUN_CASES(cases)
