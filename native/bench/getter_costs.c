/* getter_costs: ns a call of each getter by the number of records in its buffer, as JSON: {"OpNum": {"1": ns, "10": ns, …}, …}.
 * Each verifies the checksum of every record of the buffer; Type and Name can be fetched once a record, so each call has a record of its
 * own. */
#include <acl/acl_prof.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stream.h"

#define CALLS 1000u
#define LARGEST 1000u

static const uint8_t *records;
static size_t record_bytes;

static void op_num(const void *info, size_t length, uint32_t index) {
    uint32_t number;
    (void)index;
    aclprofGetOpNum(info, length, &number);
}
static void model_id(const void *info, size_t length, uint32_t index) {
    aclprofGetModelId(info, length, index);
}
static void start(const void *info, size_t length, uint32_t index) {
    aclprofGetOpStart(info, length, index);
}
static void end(const void *info, size_t length, uint32_t index) {
    aclprofGetOpEnd(info, length, index);
}
static void duration(const void *info, size_t length, uint32_t index) {
    aclprofGetOpDuration(info, length, index);
}
static void type_len(const void *info, size_t length, uint32_t index) {
    size_t bytes;
    aclprofGetOpTypeLen(info, length, index, &bytes);
}
static void name_len(const void *info, size_t length, uint32_t index) {
    size_t bytes;
    aclprofGetOpNameLen(info, length, index, &bytes);
}
static char text[512];
static void type(const void *info, size_t length, uint32_t index) {
    aclprofGetOpType(info, length, index, text, sizeof text);
}
static void name(const void *info, size_t length, uint32_t index) {
    aclprofGetOpName(info, length, index, text, sizeof text);
}

static const struct {
    const char *label;
    void (*call)(const void *info, size_t length, uint32_t index);
} getters[] = {{"OpNum", op_num},     {"ModelId", model_id}, {"Start", start}, {"End", end},  {"Duration", duration},
               {"TypeLen", type_len}, {"NameLen", name_len}, {"Type", type},   {"Name", name}};

int main(void) {
    struct stream stream;
    stream_open("llm-decode", &stream);
    /* Four buffer sizes, each with records of its own, as a string can be fetched only once. */
    static const uint32_t sizes[] = {1, 10, 100, 1000};
    stream_make(&stream, 4 * (CALLS + LARGEST));
    record_bytes = stream.record_bytes;
    uint8_t *all = malloc(stream.records * record_bytes);
    if (pread(stream.file, all, stream.records * record_bytes, 0) < 0) {
        bench_fail("pread", -1);
    }
    records = all;
    /* The library's first call of all sets it up. */
    model_id(records, record_bytes, 0);
    printf("{");
    for (size_t g = 0; g < sizeof getters / sizeof *getters; g++) {
        printf("%s\"%s\": {", g ? ", " : "", getters[g].label);
        for (size_t s = 0; s < 4; s++) {
            uint32_t calls = sizes[s] == 1000 ? CALLS / 10 : CALLS;
            const uint8_t *from = records + s * (CALLS + LARGEST) * record_bytes;
            /* A buffer's first record is asked for, and the buffer moves on by one: each call has another record. */
            uint64_t begin = bench_now_ns();
            for (uint32_t i = 0; i < calls; i++) {
                getters[g].call(from + i * record_bytes, sizes[s] * record_bytes, 0);
            }
            printf("%s\"%u\": %.0f", s ? ", " : "", sizes[s], (double)(bench_now_ns() - begin) / calls);
        }
        printf("}");
    }
    printf("}\n");
    free(all);
    return 0;
}
