#include "mapping.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "histogram.h"
#include "memfd.h"

static bool text_ends(const char *text, size_t size) {
    return memchr(text, 0, size) != NULL;
}

static int check_directory(const struct segment_header *header, uint64_t bytes) {
    static const uint32_t rows[SEGMENT_TABLES] = {sizeof(struct segment_model), sizeof(struct segment_series),
                                                  sizeof(struct segment_series), 1};
    static const uint64_t most[SEGMENT_TABLES] = {MODELS_CAPACITY, MODELS_CAPACITY, SERIES_CAPACITY_MAX,
                                                  (uint64_t)SERIES_CAPACITY_MAX * STRINGS_BYTES_PER_SERIES};
    for (uint32_t i = 0; i < SEGMENT_TABLES; i++) {
        const struct segment_table *table = &header->directory[i];
        if (table->kind != i + 1 || table->row_bytes != rows[i] || !table->capacity || table->capacity > most[i]) {
            return OPSTREAM_E_LAYOUT;
        }
        if (table->offset % 4096 || table->offset < sizeof(struct segment) || table->offset > bytes ||
            table->capacity * table->row_bytes > bytes - table->offset) {
            return OPSTREAM_E_LAYOUT;
        }
    }
    if (header->directory[TABLE_MODELS - 1].capacity != header->directory[TABLE_OTHERS - 1].capacity ||
        header->directory[TABLE_STRINGS - 1].capacity % 8) {
        return OPSTREAM_E_LAYOUT;
    }
    return 0;
}

static int check_header(const struct segment_header *header, uint64_t bytes) {
    const struct segment_identity *identity = &header->identity;
    if (header->magic != SEGMENT_MAGIC) {
        return OPSTREAM_E_MAGIC;
    }
    if (header->version != SEGMENT_VERSION) {
        return OPSTREAM_E_VERSION;
    }
    if (header->segment_bytes != bytes) {
        return OPSTREAM_E_SIZE;
    }
    if (header->header_bytes != sizeof(struct segment) || header->cells != OPSTREAM_CELLS || header->tables != SEGMENT_TABLES ||
        memcmp(header->bounds_ns, histogram_bounds_ns, sizeof(header->bounds_ns))) {
        return OPSTREAM_E_LAYOUT;
    }
    if ((identity->kind != OPSTREAM_KIND_AGENT && identity->kind != OPSTREAM_KIND_HOSTED) ||
        !text_ends(identity->app, sizeof(identity->app)) || !text_ends(identity->labels, sizeof(identity->labels)) ||
        !text_ends(identity->hosted_name, sizeof(identity->hosted_name)) ||
        !text_ends(identity->config_digest, sizeof(((struct opstream_view_info *)0)->config_digest))) {
        return OPSTREAM_E_LAYOUT;
    }
    return check_directory(header, bytes);
}

/* Whether [offset, offset + bytes) lies in allocated pages: only these are read, as reading a hole fills it at the reader's cost. */
static bool allocated(const struct mapping *mapping, struct extent *extent, uint64_t offset, uint64_t bytes) {
    if (offset >= extent->begin && offset + bytes <= extent->end) {
        return true;
    }
    uint64_t end = memfd_allocated_end(mapping->fd, offset);
    if (end > offset) {
        *extent = (struct extent){offset, end};
    }
    return offset + bytes <= end;
}

static int read_header(struct mapping *mapping, struct segment_identity *ret_identity) {
    struct extent head = {0, 0};
    struct segment_header header;
    if (mapping->bytes < sizeof(struct segment)) {
        return OPSTREAM_E_SIZE;
    }
    if (!allocated(mapping, &head, 0, sizeof(struct segment))) {
        return OPSTREAM_E_MAGIC; /* a hole reads as zeros */
    }
    copy_words(&header, mapping->head, sizeof(header));
    int status = check_header(&header, mapping->bytes);
    if (status) {
        return status;
    }
    memcpy(mapping->tables, header.directory, sizeof(mapping->tables));
    *ret_identity = header.identity;
    return 0;
}

int mapping_open(int fd, uint64_t max_bytes, struct mapping *ret_mapping, struct segment_identity *ret_identity) {
    struct mapping mapping = {0};
    int status = memfd_check(fd, max_bytes, &mapping.bytes);
    if (status) {
        return status;
    }
    mapping.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (mapping.fd < 0) {
        return OPSTREAM_E_SYSTEM;
    }
    void *base = mmap(NULL, mapping.bytes, PROT_READ, MAP_SHARED, mapping.fd, 0);
    if (base == MAP_FAILED) {
        close(mapping.fd);
        return OPSTREAM_E_SYSTEM;
    }
    mapping.head = base;
    status = read_header(&mapping, ret_identity);
    if (status) {
        mapping_free(&mapping);
        return status;
    }
    *ret_mapping = mapping;
    return 0;
}

void mapping_free(struct mapping *mapping) {
    munmap((void *)mapping->head, mapping->bytes);
    close(mapping->fd);
}

int mapping_used(const struct mapping *mapping, enum segment_table_kind kind, uint64_t *ret_rows) {
    uint64_t rows = atomic_load_explicit((cell_u64 *)&mapping->head->used[kind - 1].rows, memory_order_acquire);
    if (rows > mapping->tables[kind - 1].capacity) {
        return OPSTREAM_E_LAYOUT;
    }
    *ret_rows = rows;
    return 0;
}

const void *mapping_row(struct mapping *mapping, enum segment_table_kind kind, uint64_t row, uint64_t bytes) {
    const struct segment_table *table = &mapping->tables[kind - 1];
    uint64_t offset = table->offset + row * table->row_bytes;
    return allocated(mapping, &mapping->extents[kind - 1], offset, bytes) ? (const char *)mapping->head + offset : NULL;
}
