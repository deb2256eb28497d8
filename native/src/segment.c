#include "segment.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"
#include "label.h"
#include "memfd.h"

#define PAGE_BYTES UINT64_C(4096)
#define CHUNK_BYTES (UINT64_C(256) << 10)

static uint64_t round_up(uint64_t bytes, uint64_t multiple) {
    return (bytes + multiple - 1) / multiple * multiple;
}

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static uint64_t lay_out(uint32_t series_capacity, struct segment_table *ret_directory) {
    const struct segment_table tables[SEGMENT_TABLES] = {
        {TABLE_MODELS, sizeof(struct segment_model), 0, MODELS_CAPACITY},
        {TABLE_OTHERS, sizeof(struct segment_series), 0, MODELS_CAPACITY},
        {TABLE_SERIES, sizeof(struct segment_series), 0, series_capacity},
        {TABLE_STRINGS, 1, 0, (uint64_t)series_capacity * STRINGS_BYTES_PER_SERIES},
    };
    uint64_t offset = round_up(sizeof(struct segment), PAGE_BYTES);
    for (uint32_t i = 0; i < SEGMENT_TABLES; i++) {
        ret_directory[i] = tables[i];
        ret_directory[i].offset = offset;
        offset += round_up(tables[i].row_bytes * tables[i].capacity, PAGE_BYTES);
    }
    return offset;
}

static void copy_text(char *ret_text, size_t size, const char *text) {
    size_t length = label_fitting(text, strlen(text), size - 1);
    memcpy(ret_text, text, length);
    memset(ret_text + length, 0, size - length);
}

static int write_header(struct segment_writer *writer, const struct segment_identity *identity, const struct segment_table *directory) {
    struct segment_header *header = &writer->base->header;
    header->magic = SEGMENT_MAGIC;
    header->version = SEGMENT_VERSION;
    header->header_bytes = sizeof(struct segment);
    header->segment_bytes = writer->bytes;
    header->cells = OPSTREAM_CELLS;
    header->tables = SEGMENT_TABLES;
    memcpy(header->directory, directory, sizeof(header->directory));
    memcpy(header->bounds_ns, histogram_bounds_ns, sizeof(header->bounds_ns));
    header->identity = *identity;
    header->identity.created_wall_ns = clock_ns(CLOCK_REALTIME);
    header->identity.created_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    header->identity.pid = (uint32_t)getpid();
    uint8_t *uuid = header->identity.uuid;
    if (syscall(SYS_getrandom, uuid, sizeof(header->identity.uuid), 0) != sizeof(header->identity.uuid)) {
        return OPSTREAM_E_SYSTEM;
    }
    uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40); /* version 4: random */
    uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
    return 0;
}

int segment_create(const struct segment_identity *identity, uint32_t series_capacity, struct segment_writer *ret_writer) {
    if (series_capacity < SERIES_CAPACITY_MIN || series_capacity > SERIES_CAPACITY_MAX) {
        return OPSTREAM_E_INVALID;
    }
    struct segment_table directory[SEGMENT_TABLES];
    struct segment_writer writer = {.bytes = lay_out(series_capacity, directory), .series_capacity = series_capacity};
    writer.fd = memfd_make(writer.bytes);
    if (writer.fd < 0) {
        return OPSTREAM_E_MEMORY;
    }
    writer.identity = descriptor_identify(writer.fd);
    void *base = MAP_FAILED;
    if (memfd_allocate(writer.fd, 0, directory[0].offset)) {
        base = mmap(NULL, writer.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, writer.fd, 0);
    }
    if (base == MAP_FAILED) {
        close(writer.fd);
        return OPSTREAM_E_MEMORY;
    }
    writer.base = base;
    memset(base, 0, directory[0].offset); /* all its pages: see have() */
    writer.models = (void *)((char *)base + directory[TABLE_MODELS - 1].offset);
    writer.others = (void *)((char *)base + directory[TABLE_OTHERS - 1].offset);
    writer.series = (void *)((char *)base + directory[TABLE_SERIES - 1].offset);
    writer.strings = (char *)base + directory[TABLE_STRINGS - 1].offset;
    writer.strings_bytes = directory[TABLE_STRINGS - 1].capacity;

    int status = write_header(&writer, identity, directory);
    if (!status && !segment_have_model(&writer, 0)) {
        status = OPSTREAM_E_MEMORY;
    }
    /* A child of fork must not write here. */
    if (!status && (madvise(base, writer.bytes, MADV_DONTFORK) || memfd_seal(writer.fd))) {
        status = OPSTREAM_E_SYSTEM;
    }
    if (status) {
        segment_free(&writer);
        return status;
    }
    copy_text(writer.models[0].name, sizeof(writer.models[0].name), "(other)");
    writer.models[0].device = DEVICE_OTHER;
    atomic_store_explicit(&writer.base->used[TABLE_MODELS - 1].rows, 1, memory_order_release);
    *ret_writer = writer;
    return 0;
}

int segment_descriptor(const struct segment_writer *writer) {
    return descriptor_is(writer->fd, &writer->identity) ? writer->fd : -1;
}

void segment_free(struct segment_writer *writer) {
    if (!writer) {
        return;
    }
    munmap(writer->base, writer->bytes);
    if (segment_descriptor(writer) >= 0) {
        close(writer->fd);
    }
}

/* Pages of a table up to `wanted` bytes, and up to a chunk more. A page that was only allocated still looks like a hole to lseek, and would
 * fault once more under a record: so it is written to. */
static bool have(struct segment_writer *writer, enum segment_table_kind kind, uint64_t wanted, uint64_t chunk, uint64_t *had) {
    if (wanted <= *had) {
        return true;
    }
    const struct segment_table *table = &writer->base->header.directory[kind - 1];
    uint64_t bytes = round_up(table->row_bytes * table->capacity, PAGE_BYTES), end = round_up(wanted, chunk);
    if (wanted > bytes) {
        return false;
    }
    if (end > bytes) {
        end = bytes;
    }
    int fd = segment_descriptor(writer);
    if (fd < 0 || !memfd_allocate(fd, table->offset + *had, end - *had)) {
        return false;
    }
    for (; *had < end; *had += PAGE_BYTES) {
        ((volatile char *)writer->base)[table->offset + *had] = 0;
    }
    return true;
}

bool segment_have_model(struct segment_writer *writer, uint64_t row) {
    return row < MODELS_CAPACITY && have(writer, TABLE_MODELS, (row + 1) * sizeof(struct segment_model), PAGE_BYTES, &writer->models_had) &&
           have(writer, TABLE_OTHERS, (row + 1) * sizeof(struct segment_series), PAGE_BYTES, &writer->others_had);
}

bool segment_have_series(struct segment_writer *writer, uint64_t row) {
    return have(writer, TABLE_SERIES, (row + 1) * sizeof(struct segment_series), CHUNK_BYTES, &writer->series_had);
}

bool segment_have_strings(struct segment_writer *writer, uint64_t bytes) {
    return have(writer, TABLE_STRINGS, bytes, CHUNK_BYTES, &writer->strings_had);
}

uint32_t segment_model_row(struct segment_writer *writer, uint32_t model_id, uint32_t device, const char *name) {
    cell_u64 *used = &writer->base->used[TABLE_MODELS - 1].rows;
    uint32_t rows = (uint32_t)cell_get(used);
    char text[sizeof(writer->models->name)];
    copy_text(text, sizeof(text), name);
    uint32_t row = 1;
    for (; row < rows; row++) {
        struct segment_model *model = &writer->models[row];
        uint32_t state = atomic_load_explicit(&model->state, memory_order_relaxed);
        if ((state == MODEL_UNSUBSCRIBED || state == MODEL_FAILED) && model->device == device && !strcmp(model->name, text)) {
            break;
        }
    }
    if (row == rows) {
        if (!segment_have_model(writer, row)) {
            return 0;
        }
        memcpy(writer->models[row].name, text, sizeof(text));
        writer->models[row].device = device;
    }
    atomic_store_explicit(&writer->models[row].model_id, model_id, memory_order_relaxed);
    if (row == rows) {
        atomic_store_explicit(used, rows + 1, memory_order_release);
    }
    return row;
}

void segment_model_set_state(struct segment_writer *writer, uint32_t row, enum segment_model_state state, uint64_t now_ns) {
    if (row == 0) {
        return; /* nobody's: it stands for any number of models */
    }
    struct segment_model *model = &writer->models[row];
    uint64_t word = cell_get(&model->subscribed);
    uint64_t sum = word & SUBSCRIBED_RUNNING ? now_ns - (word & ~SUBSCRIBED_RUNNING) : word;
    if (state == MODEL_SUBSCRIBED && !(word & SUBSCRIBED_RUNNING)) {
        cell_add(&model->subscriptions, 1);
    }
    cell_set(&model->subscribed, state == MODEL_SUBSCRIBED ? SUBSCRIBED_RUNNING | (now_ns - sum) : sum);
    atomic_store_explicit(&model->state, state, memory_order_relaxed);
}

void segment_count_error(struct segment_writer *writer, int acl_error) {
    struct segment_error *errors = writer->base->errors;
    uint64_t code = (uint32_t)acl_error;
    uint32_t i = 0;
    while (i < OPSTREAM_SUBSCRIBE_ERRORS_MAX - 1 && cell_get(&errors[i].acl_error) && cell_get(&errors[i].acl_error) != code) {
        i++;
    }
    cell_set(&errors[i].acl_error, i == OPSTREAM_SUBSCRIBE_ERRORS_MAX - 1 ? ERROR_OTHER : code);
    cell_add(&errors[i].count, 1);
}

/* Every store is a release, so that who sees one of them also sees the odd sequence before it: no fence is needed (and thread sanitizers
 * know none). */
void segment_commit(struct segment_writer *writer, uint64_t held_back) {
    struct segment_counters *counters = &writer->base->counters;
    struct segment_totals *from = &counters->live, *to = &counters->committed;
    uint64_t sequence = cell_get(&counters->sequence);
    cell_set(&counters->sequence, sequence + 1);
    atomic_store_explicit(&to->records_read, cell_get(&from->records_read) - held_back, memory_order_release);
    atomic_store_explicit(&to->records_recorded, cell_get(&from->records_recorded), memory_order_release);
    atomic_store_explicit(&to->records_overflowed, cell_get(&from->records_overflowed), memory_order_release);
    atomic_store_explicit(&to->records_corrupt, cell_get(&from->records_corrupt), memory_order_release);
    atomic_store_explicit(&to->records_name, cell_get(&from->records_name), memory_order_release);
    atomic_store_explicit(&to->records_time, cell_get(&from->records_time), memory_order_release);
    atomic_store_explicit(&to->bytes_discarded, cell_get(&from->bytes_discarded), memory_order_release);
    atomic_store_explicit(&counters->sequence, sequence + 2, memory_order_release);
}
