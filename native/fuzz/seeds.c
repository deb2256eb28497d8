/* Writes the fuzzers' seeds: seeds FOLDER makes FOLDER/segment and FOLDER/message. Segments are made by the real writer and then packed:
 * the same rows in tables as small as can be, as a fuzzer gets nowhere in a megabyte of zeros. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "histogram.h"
#include "segment_fuzz.h"
#include "series.h"

#define NOW_NS (UINT64_C(1) << 40)

static void require(int condition, const char *what) {
    if (!condition) {
        perror(what);
        exit(1);
    }
}

static void write_file(const char *folder, const char *kind, const char *name, const uint8_t *bytes, size_t length) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s/%s", folder, kind, name);
    FILE *file = fopen(path, "wb");
    require(file && fwrite(bytes, 1, length, file) == length && !fclose(file), path);
}

static void write_message(const char *folder, const char *name, struct opstream_message message) {
    uint8_t bytes[OPSTREAM_MESSAGE_BYTES];
    message.version = OPSTREAM_PROTOCOL_VERSION;
    require(!opstream_message_encode(&message, bytes), name);
    write_file(folder, "message", name, bytes, sizeof(bytes));
}

/* Moves the used rows of each table into pages of their own behind the header, and names them in its directory. */
static void write_segment(const char *folder, const char *name, const struct segment_writer *writer, const uint8_t *patches,
                          size_t patches_count) {
    static uint8_t bytes[1 + 255 * FUZZ_PATCH_BYTES + FUZZ_SEGMENT_BYTES];
    size_t begin = 1 + patches_count * FUZZ_PATCH_BYTES, end = sizeof(struct segment);
    memset(bytes, 0, sizeof(bytes));
    bytes[0] = (uint8_t)patches_count;
    if (patches_count) {
        memcpy(bytes + 1, patches, patches_count * FUZZ_PATCH_BYTES);
    }
    struct segment *packed = malloc(sizeof(*packed));
    require(packed != NULL, name);
    memcpy(packed, writer->base, sizeof(*packed));
    packed->header.segment_bytes = FUZZ_SEGMENT_BYTES;
    for (uint32_t i = 0; i < SEGMENT_TABLES; i++) {
        struct segment_table *table = &packed->header.directory[i];
        const char *rows = (const char *)writer->base + table->offset;
        uint64_t used = cell_get(&packed->used[i == TABLE_OTHERS - 1 ? TABLE_MODELS - 1 : i].rows);
        table->capacity = table->kind == TABLE_STRINGS ? (used + 71) / 8 * 8 : used + (table->kind == TABLE_SERIES);
        table->offset = (end + 4095) / 4096 * 4096;
        require(table->offset + table->capacity * table->row_bytes <= FUZZ_SEGMENT_BYTES, "a seed is too large");
        memcpy(bytes + begin + table->offset, rows, used * table->row_bytes);
        end = table->offset + used * table->row_bytes;
    }
    memcpy(bytes + begin, packed, sizeof(*packed));
    write_file(folder, "segment", name, bytes, begin + end);
    free(packed);
}

static void record(struct series_table *table, uint32_t model_row, const char *type, const char *name, uint64_t duration_ns) {
    struct operator_run run = {.type = type, .name = name, .type_length = strlen(type), .name_length = strlen(name)};
    struct moment now = moment_of(NOW_NS, 1);
    series_record(table, model_row, &run, duration_ns, &now);
}

static void write_segments(const char *folder) {
    struct segment_identity identity = {
        .kind = OPSTREAM_KIND_HOSTED, .app = "app", .labels = "team=a", .hosted_name = "h", .config_digest = "d"};
    struct segment_writer writer;
    struct series_table *table;
    require(!segment_create(&identity, SERIES_CAPACITY_MIN, &writer), "segment");
    require(!series_table_new(&writer, &table), "series");
    write_segment(folder, "empty", &writer, NULL, 0);

    segment_model_row(&writer, 1, 0, "model");
    segment_model_set_state(&writer, 1, MODEL_SUBSCRIBED, NOW_NS - 1000);
    cell_set(&writer.models[1].last_execution_wall_ns, NOW_NS);
    cell_set(&writer.models[1].busy_created_wall_ns, NOW_NS);
    histogram_add(&writer.models[1].executions, 2000000, NOW_NS);
    record(table, 1, "MatMul", "layer/0", 1500);
    record(table, 0, "Cast\xff", "a name that is longer than the label's limit", 700);
    histogram_add(&writer.others[0].duration, 90, 1);
    struct segment_counters *counters = &writer.base->counters;
    cell_set(&counters->live.records_read, 5);
    cell_set(&counters->live.records_recorded, 3);
    cell_set(&counters->live.records_time, 1);
    cell_set(&counters->record_bytes, 80);
    cell_set(&counters->bytes_taken, 330);
    cell_set(&counters->bytes_settled, 80);
    segment_commit(&writer, 1);
    segment_count_error(&writer, 200007);
    write_segment(folder, "rows", &writer, NULL, 0);

    /* One more row of SERIES than there was, and the sequence lock taken. */
    size_t used = offsetof(struct segment, used) + (TABLE_SERIES - 1) * sizeof(struct segment_used);
    size_t sequence = offsetof(struct segment, counters) + offsetof(struct segment_counters, sequence);
    const uint8_t patches[] = {(uint8_t)used, (uint8_t)(used >> 8), 3, (uint8_t)sequence, (uint8_t)(sequence >> 8), 3};
    write_segment(folder, "patched", &writer, patches, sizeof(patches) / FUZZ_PATCH_BYTES);
    series_table_free(table);
    segment_free(&writer);
}

static void write_messages(const char *folder) {
    write_message(folder, "hello",
                  (struct opstream_message){.type = OPSTREAM_MESSAGE_HELLO,
                                            .uuid = "0123456789abcde",
                                            .kind = OPSTREAM_KIND_HOSTED,
                                            .segment_bytes = 20480000,
                                            .hosted_name = "r\xc3\xa9snet",
                                            .config_digest = "0123456789abcdef0123456789abcdef"});
    write_message(folder, "refuse",
                  (struct opstream_message){.type = OPSTREAM_MESSAGE_REFUSE, .reason = OPSTREAM_E_UNSEALED, .text = "a seal is missing"});
    write_message(folder, "bye", (struct opstream_message){.type = OPSTREAM_MESSAGE_BYE});
}

int main(int argc, char **argv) {
    char path[4096];
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    mkdir(argv[1], 0777);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", argv[1], (const char *[]){"segment", "message"}[i]);
        mkdir(path, 0777);
    }
    write_segments(argv[1]);
    write_messages(argv[1]);
    return 0;
}
