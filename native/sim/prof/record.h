/* One record of the stream: what is in it, its bytes, and its checksum. */
#ifndef OPSTREAM_SIM_RECORD_H
#define OPSTREAM_SIM_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_BYTES 80u
#define RECORD_MAX_BYTES 256u

struct record {
    uint32_t model_id;
    uint32_t thread_id;
    uint32_t device;
    uint64_t name_index;
    uint64_t start;
    uint64_t end;
    uint64_t duration;
};

/* Another size (a multiple of 8 from RECORD_BYTES to RECORD_MAX_BYTES) or another order of the fields, for faults; before the first use. */
void record_shape(size_t bytes, bool permuted);

size_t record_bytes(void);

/* Writes record_bytes() bytes, checksum included. */
void record_pack(const struct record *record, uint8_t *ret_bytes);

/* Reads the fields; verifies nothing. */
void record_unpack(const uint8_t *bytes, struct record *ret_record);
uint32_t record_flag(const uint8_t *bytes);

/* Whether the checksum is right. */
bool record_valid(const uint8_t *bytes);

#endif
