#include "frame.h"

#include "rig.h"

#define RECORD 80u
#define LONGEST_RUN (3 * RECORD + 7)

static struct rig rig;
static uint8_t *records; /* good ones */
static size_t record_count;

/* Bytes in which the vendor's checksum accepts nothing. */
static void fill_with_garbage(uint8_t *bytes, size_t count, uint64_t seed) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        bytes[i] = (uint8_t)(seed >> 56);
    }
}

struct outcome {
    uint64_t good;
    struct frame_loss loss;
};

/* As the reader does it: each record is tried, and refused when the checksum refuses it. */
static void take(struct frame *frame, struct outcome *outcome) {
    const uint8_t *record;
    while ((record = frame_next(frame, &outcome->loss)) != NULL) {
        uint32_t number;
        if (rig.vendor.get_op_num(record, RECORD, &number) != 0) {
            frame_reject(frame);
            continue;
        }
        CHECK(memcmp(record, records + outcome->good * RECORD, RECORD) == 0);
        outcome->good++;
    }
}

static void feed(struct frame *frame, const uint8_t *bytes, size_t count, size_t chunk, struct outcome *outcome) {
    while (count > 0) {
        size_t room_bytes;
        uint8_t *room = frame_room(frame, &room_bytes);
        size_t part = chunk < count ? chunk : count;
        CHECK(part <= room_bytes);
        memcpy(room, bytes, part);
        frame_filled(frame, part);
        bytes += part;
        count -= part;
        take(frame, outcome);
    }
}

static void check_outcome(const struct outcome *outcome, uint64_t good, uint64_t run_bytes) {
    CHECK_EQ_U64(outcome->good, good);
    CHECK_EQ_U64(outcome->loss.corrupt_records, run_bytes / RECORD);
    CHECK_EQ_U64(outcome->loss.discarded_bytes, run_bytes % RECORD);
}

/* One run of every length between good records, in chunks of every kind. */
static void test_runs(void) {
    static const size_t chunks[] = {1, 7, RECORD - 1, RECORD, RECORD + 1, 4096};
    static uint8_t stream[5 * RECORD + LONGEST_RUN];
    for (size_t run_bytes = 0; run_bytes <= LONGEST_RUN; run_bytes++) {
        memcpy(stream, records, 2 * RECORD);
        fill_with_garbage(stream + 2 * RECORD, run_bytes, run_bytes);
        memcpy(stream + 2 * RECORD + run_bytes, records + 2 * RECORD, 3 * RECORD);
        for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
            struct frame *frame;
            struct outcome outcome = {0};
            CHECK_EQ_INT(frame_new(&rig.vendor, RECORD, &frame), OPSTREAM_OK);
            feed(frame, stream, 5 * RECORD + run_bytes, chunks[c], &outcome);
            check_outcome(&outcome, 5, run_bytes);
            CHECK_EQ_U64(frame_pending_bytes(frame), 0);
            frame_free(frame);
        }
    }
}

/* A record of which only the beginning was ever written doesn't take the next one with it. */
static void test_truncated(void) {
    for (size_t part = 1; part < RECORD; part++) {
        struct frame *frame;
        struct outcome outcome = {0};
        CHECK_EQ_INT(frame_new(&rig.vendor, RECORD, &frame), OPSTREAM_OK);
        feed(frame, records, RECORD, RECORD, &outcome);
        feed(frame, records + 5 * RECORD, part, part, &outcome);
        CHECK_EQ_U64(frame_pending_bytes(frame), part);
        feed(frame, records + RECORD, 2 * RECORD, RECORD, &outcome);
        check_outcome(&outcome, 3, part);
        frame_free(frame);
    }
}

/* When nothing comes any more a run of whole records ends; another one waits for the rest of a record. */
static void test_idle(void) {
    uint8_t garbage[2 * RECORD];
    fill_with_garbage(garbage, sizeof garbage, 1);
    struct frame *frame;
    struct outcome outcome = {0};
    CHECK_EQ_INT(frame_new(&rig.vendor, RECORD, &frame), OPSTREAM_OK);
    frame_idle(frame, &outcome.loss);
    check_outcome(&outcome, 0, 0);
    feed(frame, garbage, RECORD + 30, 4096, &outcome);
    frame_idle(frame, &outcome.loss);
    check_outcome(&outcome, 0, 0);
    CHECK_EQ_U64(frame_pending_bytes(frame), RECORD + 30);
    feed(frame, garbage + RECORD + 30, RECORD - 30, 4096, &outcome);
    frame_idle(frame, &outcome.loss);
    check_outcome(&outcome, 0, 2 * RECORD);
    CHECK_EQ_U64(frame_pending_bytes(frame), 0);
    feed(frame, records, RECORD, 4096, &outcome);
    check_outcome(&outcome, 1, 2 * RECORD);
    frame_free(frame);
}

/* At the end of a pipe what is left is lost, whole or not. */
static void test_finish(void) {
    struct frame *frame;
    struct outcome outcome = {0};
    CHECK_EQ_INT(frame_new(&rig.vendor, RECORD, &frame), OPSTREAM_OK);
    feed(frame, records, RECORD + 33, 4096, &outcome);
    frame_finish(frame, &outcome.loss);
    check_outcome(&outcome, 1, 33);
    frame_finish(frame, &outcome.loss);
    check_outcome(&outcome, 1, 33);
    frame_free(frame);
}

/* More than the buffer holds, so that it wraps at every offset of a record. */
static void test_long_stream(void) {
    struct frame *frame;
    struct outcome outcome = {0};
    CHECK_EQ_INT(frame_new(&rig.vendor, RECORD, &frame), OPSTREAM_OK);
    feed(frame, records, record_count * RECORD, 100003, &outcome);
    check_outcome(&outcome, record_count, 0);
    frame_free(frame);
}

static void all(void) {
    size_t bytes;
    rig = rig_open();
    uint32_t model_id = rig_load(&rig, "op\t0\t1000\tConv2D\tlayer/0\nop\t1000\t1000\tRelu\tlayer/1\n");
    records = rig_records(&rig, model_id, 4000, &bytes);
    record_count = bytes / RECORD;
    CHECK_EQ_U64(record_count, 12000);
    CHECK_EQ_U64(bytes % RECORD, 0);
    test_runs();
    test_truncated();
    test_idle();
    test_finish();
    test_long_stream();
    free(records);
}

int main(void) {
    frame_free(NULL);
    rig_case(all, "");
    return 0;
}
