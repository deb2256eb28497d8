/* forgery.h: an honest segment, and one that has a lie in it. */
#ifndef OPSTREAM_FORGERY_H
#define OPSTREAM_FORGERY_H

#include <sys/mman.h>

#include "check.h"
#include "memfd.h"
#include "recording.h"

#define MAX_BYTES (UINT64_C(64) << 20)
#define NOW_NS (UINT64_C(100) * WINDOW_NS)

static inline struct segment_writer new_segment(uint32_t capacity) {
    struct segment_identity identity = {
        .kind = OPSTREAM_KIND_HOSTED, .app = "app", .labels = "team=a", .hosted_name = "h", .config_digest = "d"};
    struct segment_writer writer;
    CHECK_EQ_INT(segment_create(&identity, capacity, &writer), 0);
    return writer;
}

/* The caller's, sealed. The segment has one operator. */
static inline int lying_memfd(void (*lie)(struct segment *)) {
    struct segment_writer writer = new_segment(64);
    struct series_table *table;
    CHECK_EQ_INT(series_table_new(&writer, &table), 0);
    record_operator(table, 0, "type", "name", 100, 5, NOW_NS);
    int fd = memfd_make(writer.bytes);
    CHECK(fd >= 0);
    CHECK(memfd_allocate(fd, 0, writer.bytes));
    void *copy = mmap(NULL, writer.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(copy != MAP_FAILED);
    memcpy(copy, writer.base, writer.bytes);
    lie(copy);
    munmap(copy, writer.bytes);
    CHECK_EQ_INT(memfd_seal(fd), 0);
    series_table_free(table);
    segment_free(&writer);
    return fd;
}

#endif
