#include "loops.h"

#include <acl/acl_prof.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../src/reader.h"

#define SAMPLE_RECORDS 10u

/* Reads until `bytes` are there or the pipe has ended; a multiple of a record as the feeder never cuts one for good. */
static size_t read_fully(int fd, uint8_t *ret_buffer, size_t bytes) {
    size_t got = 0;
    while (got < bytes) {
        ssize_t part = read(fd, ret_buffer + got, bytes - got);
        if (part < 0) {
            bench_fail("read", (int)part);
        }
        if (part == 0) {
            break;
        }
        got += (size_t)part;
    }
    return got;
}

/* Keeps the compiler from dropping what the sample would print. */
static volatile uint64_t sink;

uint64_t loop_sample(const struct stream *stream, int read_fd) {
    size_t bytes = stream->record_bytes * SAMPLE_RECORDS, got;
    uint8_t *buffer = malloc(bytes);
    uint64_t records = 0;
    while ((got = read_fully(read_fd, buffer, bytes)) > 0) {
        uint32_t number = 0;
        aclprofGetOpNum(buffer, got, &number);
        for (uint32_t i = 0; i < number; i++) {
            size_t length = 0;
            sink = aclprofGetModelId(buffer, got, i);
            aclprofGetOpTypeLen(buffer, got, i, &length);
            char *type = calloc(1, length);
            aclprofGetOpType(buffer, got, i, type, length);
            aclprofGetOpNameLen(buffer, got, i, &length);
            char *name = calloc(1, length);
            aclprofGetOpName(buffer, got, i, name, length);
            sink = aclprofGetOpStart(buffer, got, i);
            sink = aclprofGetOpEnd(buffer, got, i);
            sink = aclprofGetOpDuration(buffer, got, i);
            sink = (uint64_t)type[0] + (uint64_t)name[0];
            free(type);
            free(name);
        }
        records += number;
    }
    free(buffer);
    close(read_fd);
    return records;
}

uint64_t loop_strings(const struct stream *stream, int read_fd) {
    static uint8_t buffer[80u * 13107u];
    size_t bytes = sizeof buffer / stream->record_bytes * stream->record_bytes, got;
    char type[4096] = {0}, name[4096] = {0};
    uint64_t records = 0;
    while ((got = read_fully(read_fd, buffer, bytes)) > 0) {
        for (size_t at = 0; at + stream->record_bytes <= got; at += stream->record_bytes) {
            if (aclprofGetOpType(buffer + at, stream->record_bytes, 0, type, sizeof type) != 0 ||
                aclprofGetOpName(buffer + at, stream->record_bytes, 0, name, sizeof name) != 0) {
                bench_fail("aclprofGetOpType/Name", 0);
            }
            memset(type, 0, strlen(type));
            memset(name, 0, strlen(name));
            records++;
        }
    }
    close(read_fd);
    return records;
}

uint64_t loop_engine(const struct stream *stream, int read_fd) {
    char text[256];
    struct vendor_library library;
    struct vendor vendor;
    if (vendor_library_open(NULL, text, sizeof text, &library) != 0 || vendor_load(&library, text, sizeof text, &vendor) != 0) {
        bench_fail(text, 0);
    }
    struct segment_identity identity = {.kind = OPSTREAM_KIND_HOSTED, .app = "bench"};
    struct segment_writer writer;
    struct reader *reader = NULL;
    int status = segment_create(&identity, 8192, &writer);
    if (status != 0) {
        bench_fail("segment_create", status);
    }
    status = reader_start(&vendor, &writer, &reader);
    if (status != 0) {
        bench_fail("reader_start", status);
    }
    uint32_t row = segment_model_row(&writer, stream->model_id, 0, "model");
    reader_map_model(reader, stream->model_id, row, bench_now_ns());
    status = reader_add_pipe(reader, 0, read_fd, 1 << 20);
    if (status != 0) {
        bench_fail("reader_add_pipe", status);
    }
    close(read_fd);
    stream_fed();
    do {
        status = reader_flush(reader);
    } while (status == OPSTREAM_E_BUSY);
    if (status != 0) {
        bench_fail("reader_flush", status);
    }
    const struct segment_totals *live = &writer.base->counters.live;
    uint64_t records = cell_get(&live->records_recorded);
    if (records != cell_get(&live->records_read)) {
        bench_fail("the engine rejected records", (int)(cell_get(&live->records_read) - records));
    }
    reader_stop(reader);
    segment_free(&writer);
    return records;
}
