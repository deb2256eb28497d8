#include "decode.h"

#include "rig.h"

#define EXECUTIONS 700u
#define RUNS_PER_EXECUTION 3u /* two operators and the execution */

static struct rig rig;

static const char workload[] = "op\t0\t1000\tConv2D\tlayer/0\nop\t1000\t2500\tMatMul\ta/longer/name/of/an/operator-1.2\n";

struct stream {
    uint8_t *bytes;
    size_t count, record_bytes;
    uint32_t model_id;
    struct decoder *decoder;
};

static struct stream open_stream(const char *lines, unsigned executions) {
    struct stream stream;
    size_t bytes;
    rig = rig_open();
    stream.model_id = rig_load(&rig, lines);
    stream.bytes = rig_records(&rig, stream.model_id, executions, &bytes);
    CHECK_EQ_INT(rig.vendor.get_op_desc_size(&stream.record_bytes), 0);
    CHECK_EQ_U64(bytes % stream.record_bytes, 0);
    stream.count = bytes / stream.record_bytes;
    CHECK_EQ_INT(decoder_new(&rig.vendor, stream.record_bytes, &stream.decoder), OPSTREAM_OK);
    return stream;
}

static void close_stream(struct stream *stream) {
    decoder_free(stream->decoder);
    free(stream->bytes);
}

static const struct kept_text nothing = {.bytes = "\0\0\0"};
static const struct text_guess no_guess = {&nothing, &nothing};

static enum decode_result decode(struct stream *stream, size_t i, struct operator_run *ret_run) {
    return decoder_decode(stream->decoder, stream->bytes + i * stream->record_bytes, &no_guess, ret_run);
}

static void check_text(const char *text, size_t length, const char *expected) {
    CHECK_EQ_STR(text, expected);
    CHECK_EQ_U64(length, strlen(expected));
}

/* The runs of one execution of `workload`. */
static void check_run(const struct operator_run *run, size_t i, uint32_t model_id) {
    static const char *const types[] = {"Conv2D", "MatMul", "na"};
    static const char *const names[] = {"layer/0", "a/longer/name/of/an/operator-1.2", "keypoint_op"};
    static const uint64_t durations[] = {1000, 2500, 3500};
    size_t n = i % RUNS_PER_EXECUTION;
    CHECK_EQ_U64(run->model_id, model_id);
    check_text(run->type, run->type_length, types[n]);
    check_text(run->name, run->name_length, names[n]);
    CHECK_EQ_INT(run->is_execution, n == 2);
    if (n < 2) {
        CHECK_EQ_U64(run->end - run->start, durations[n]);
    } else {
        CHECK(run->end > run->start);
    }
}

static void decode_everything(struct stream *stream) {
    struct operator_run run;
    for (size_t i = 0; i < stream->count; i++) {
        CHECK_EQ_INT(decode(stream, i, &run), DECODED);
        check_run(&run, i, stream->model_id);
    }
}

/* A string that isn't fetched stays in the process for good. */
static void check_no_leak(void) {
    CHECK_EQ_U64(rig_journal("strings_read"), rig_journal("strings_made"));
}

static void test_proof(void) {
    struct stream stream = open_stream(workload, EXECUTIONS);
    struct operator_run run;
    CHECK_EQ_U64(stream.count, EXECUTIONS * RUNS_PER_EXECUTION);
    for (size_t i = 0; i < stream.count; i++) {
        CHECK_EQ_INT(decoder_path(stream.decoder), i < 64 ? PATH_UNDECIDED : PATH_PROVED);
        CHECK_EQ_INT(decode(&stream, i, &run), DECODED);
        check_run(&run, i, stream.model_id);
    }
    check_no_leak();
    /* Proved: two getters a record, and four more for each of the first 64 and for every 1,024th. */
    CHECK_EQ_U64(rig_journal("getter_calls"), 2 * stream.count + 4 * (64 + (stream.count - 64) / 1024));
    close_stream(&stream);
}

/* Fields in another order, and records of another size: the getters are believed. */
static void test_getters(void) {
    struct stream stream = open_stream(workload, EXECUTIONS);
    decode_everything(&stream);
    CHECK_EQ_INT(decoder_path(stream.decoder), PATH_GETTERS);
    check_no_leak();
    close_stream(&stream);
}

/* A disagreement after the proof ends it for good. */
static void test_disproof(void) {
    struct stream stream = open_stream(workload, EXECUTIONS);
    struct operator_run run;
    uint64_t (*honest)(const void *, size_t, uint32_t) = rig.vendor.get_op_duration;
    size_t i = 0;
    for (; i < 64 + 1023; i++) {
        CHECK_EQ_INT(decode(&stream, i, &run), DECODED);
    }
    CHECK_EQ_INT(decoder_path(stream.decoder), PATH_PROVED);
    rig.vendor.get_op_duration = rig.vendor.get_op_start; /* as if the duration had moved */
    CHECK_EQ_INT(decode(&stream, i++, &run), DECODED);
    CHECK_EQ_INT(decoder_path(stream.decoder), PATH_GETTERS);
    rig.vendor.get_op_duration = honest;
    for (; i < stream.count; i++) {
        CHECK_EQ_INT(decode(&stream, i, &run), DECODED);
        check_run(&run, i, stream.model_id);
    }
    CHECK_EQ_INT(decoder_path(stream.decoder), PATH_GETTERS);
    close_stream(&stream);
}

/* A getter that fails once is tried again, and nothing is lost. */
static void test_getter_error(void) {
    struct stream stream = open_stream(workload, EXECUTIONS);
    decode_everything(&stream);
    CHECK(rig_journal("fault.getter-error") > 100);
    check_no_leak();
    close_stream(&stream);
}

static void test_getter_refusal(void) {
    struct stream stream = open_stream(workload, EXECUTIONS);
    struct operator_run run;
    uint64_t refused = 0;
    for (size_t i = 0; i < stream.count; i++) {
        enum decode_result result = decode(&stream, i, &run);
        CHECK(result == DECODED || result == DECODE_NAME);
        if (result == DECODED) {
            check_run(&run, i, stream.model_id);
        } else {
            refused++;
        }
    }
    CHECK_EQ_U64(refused, 40);
    CHECK_EQ_U64(rig_journal("fault.getter-refusal"), 40);
    CHECK_EQ_U64(rig_journal("strings_made") - rig_journal("strings_read"), 80);
    close_stream(&stream);
}

/* Every single bit; and nothing is consumed, so that the record itself can still be read. A corrupt record proves and disproves nothing. */
static void test_corrupt(void) {
    struct stream stream = open_stream(workload, 200);
    struct operator_run run;
    uint8_t record[80];
    CHECK_EQ_U64(stream.record_bytes, sizeof record);
    for (size_t bit = 0; bit < 8 * sizeof record; bit++) {
        memcpy(record, stream.bytes, sizeof record);
        record[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK_EQ_INT(decoder_decode(stream.decoder, record, &no_guess, &run), DECODE_CORRUPT);
    }
    decode_everything(&stream);
    CHECK_EQ_INT(decoder_path(stream.decoder), PATH_PROVED);
    check_no_leak();
    close_stream(&stream);
}

/* Its strings are consumed: what is left of it is a record without a name. */
static void test_twice(void) {
    struct stream stream = open_stream(workload, 1);
    struct operator_run run;
    CHECK_EQ_INT(decode(&stream, 0, &run), DECODED);
    CHECK_EQ_INT(decode(&stream, 0, &run), DECODE_NAME);
    close_stream(&stream);
}

/* Names around and beyond the usual buffer, with short ones between them: nothing of a long one shows behind a short one. */
static void test_long_names(void) {
    static const size_t lengths[] = {1, 414, 2, DECODE_TEXT_BYTES - 1, 3, DECODE_TEXT_BYTES + 1, 4, 20000, 5};
    static char lines[64 * 1024];
    size_t used = 0, count = sizeof lengths / sizeof *lengths;
    for (size_t i = 0; i < count; i++) {
        used += (size_t)sprintf(lines + used, "op\t%zu\t10\tType%zu\t", 10 * i, i);
        memset(lines + used, 'a' + (int)i, lengths[i]);
        used += lengths[i];
        lines[used++] = '\n';
    }
    struct stream stream = open_stream(lines, 2);
    struct operator_run run;
    for (size_t i = 0; i < stream.count; i++) {
        size_t n = i % (count + 1);
        CHECK_EQ_INT(decode(&stream, i, &run), DECODED);
        CHECK_EQ_INT(run.is_execution, n == count);
        if (n < count) {
            CHECK_EQ_U64(run.name_length, lengths[n]);
            CHECK_EQ_U64(strlen(run.name), lengths[n]);
            CHECK(run.name[0] == 'a' + (int)n && run.name[lengths[n] - 1] == 'a' + (int)n);
        }
    }
    check_no_leak();
    close_stream(&stream);
}

static const struct kept_text *keep(const char *text) {
    struct kept_text *kept = calloc(1, (sizeof *kept + strlen(text) + 1 + 7) / 8 * 8);
    CHECK(kept != NULL);
    kept->length = (uint32_t)strlen(text);
    memcpy(kept->bytes, text, kept->length + 1);
    return kept;
}

/* What is right is given back as it is; what is nearly right isn't taken for it, whatever the text before was. */
static void test_guesses(void) {
    struct stream stream = open_stream(workload, EXECUTIONS);
    const struct kept_text *types[] = {keep("Conv2D"), keep("MatMul"),       keep("na"), keep("Conv2D_1"),
                                       keep("Mat"),    keep("MatMulMatMul"), keep("")};
    const struct kept_text *names[] = {keep("layer/0"),  keep("a/longer/name/of/an/operator-1.2"), keep("keypoint_op"),
                                       keep("layer/00"), keep("a/longer/name/of/an/operator-1."),  keep("layer/"),
                                       keep("")};
    const size_t type_count = sizeof types / sizeof *types, name_count = sizeof names / sizeof *names;
    struct operator_run run;
    for (size_t i = 0; i < stream.count; i++) {
        struct text_guess guess = {types[i % type_count], names[i / RUNS_PER_EXECUTION % name_count]};
        CHECK_EQ_INT(decoder_decode(stream.decoder, stream.bytes + i * stream.record_bytes, &guess, &run), DECODED);
        check_run(&run, i, stream.model_id);
        CHECK_EQ_INT(run.type == guess.type->bytes, strcmp(run.type, guess.type->bytes) == 0);
        CHECK_EQ_INT(run.name == guess.name->bytes, strcmp(run.name, guess.name->bytes) == 0);
    }
    for (size_t i = 0; i < type_count; i++) {
        free((void *)types[i]);
    }
    for (size_t i = 0; i < name_count; i++) {
        free((void *)names[i]);
    }
    close_stream(&stream);
}

int main(void) {
    decoder_free(NULL);
    rig_case(test_guesses, "");
    rig_case(test_proof, "");
    rig_case(test_disproof, "");
    rig_case(test_getters, "layout");
    rig_case(test_getters, "record-size=96");
    rig_case(test_getter_error, "getter-error=0.2");
    rig_case(test_getter_refusal, "getter-refusal=count:40");
    rig_case(test_corrupt, "");
    rig_case(test_twice, "");
    rig_case(test_long_names, "");
    return 0;
}
