#include "record.h"

#include <string.h>

/* Where each field is. The checksum is always at 0; fields are 8 bytes, but model, flag, thread and device, which are 4. */
struct layout {
    unsigned model, flag, thread, name, duration, start, end, core_time, device;
};

static const struct layout published = {4, 8, 12, 16, 24, 32, 40, 48, 72};
/* Same size, all numbers elsewhere: direct reading answers nonsense, the getters don't. */
static const struct layout permuted_layout = {12, 4, 8, 24, 40, 16, 32, 48, 72};

static const struct layout *layout = &published;
static size_t size = RECORD_BYTES;
static uint32_t crc_table[256];

__attribute__((constructor)) static void build_crc_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
        }
        crc_table[byte] = crc;
    }
}

/* CRC-32C of all behind the checksum, initial value all ones, not inverted at the end. One byte a step, as the real one: a faster way
 * would make clients look better than they are. */
static uint32_t checksum(const uint8_t *bytes) {
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 4; i < size; i++) {
        crc = crc >> 8 ^ crc_table[(crc ^ bytes[i]) & 0xFF];
    }
    return crc;
}

static void put32(uint8_t *at, uint32_t value) {
    memcpy(at, &value, sizeof value);
}

static void put64(uint8_t *at, uint64_t value) {
    memcpy(at, &value, sizeof value);
}

static uint32_t get32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t get64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

void record_shape(size_t bytes, bool permuted) {
    size = bytes;
    layout = permuted ? &permuted_layout : &published;
}

size_t record_bytes(void) {
    return size;
}

void record_pack(const struct record *record, uint8_t *ret_bytes) {
    memset(ret_bytes, 0, size);
    put32(ret_bytes + layout->model, record->model_id);
    put32(ret_bytes + layout->thread, record->thread_id);
    put32(ret_bytes + layout->device, record->device);
    put64(ret_bytes + layout->name, record->name_index);
    put64(ret_bytes + layout->duration, record->duration);
    put64(ret_bytes + layout->start, record->start);
    put64(ret_bytes + layout->end, record->end);
    put64(ret_bytes + layout->core_time, record->duration);
    put32(ret_bytes, checksum(ret_bytes));
}

void record_unpack(const uint8_t *bytes, struct record *ret_record) {
    ret_record->model_id = get32(bytes + layout->model);
    ret_record->thread_id = get32(bytes + layout->thread);
    ret_record->device = get32(bytes + layout->device);
    ret_record->name_index = get64(bytes + layout->name);
    ret_record->duration = get64(bytes + layout->duration);
    ret_record->start = get64(bytes + layout->start);
    ret_record->end = get64(bytes + layout->end);
}

uint32_t record_flag(const uint8_t *bytes) {
    return get32(bytes + layout->flag);
}

bool record_valid(const uint8_t *bytes) {
    return get32(bytes) == checksum(bytes);
}
