/* mapping.h: a segment as its reader has it: mapped read-only, its header checked, and read only where it has memory. Whoever wrote it may
 * be writing still, and anything: what is loaded from it is checked, and used from the copy. One thread at a time. */
#ifndef OPSTREAM_MAPPING_H
#define OPSTREAM_MAPPING_H

#include <stddef.h>

#include "layout.h"

/* An allocated range of a table. It stays so, as no hole can be punched under F_SEAL_FUTURE_WRITE. */
struct extent {
    uint64_t begin, end;
};

struct mapping {
    int fd; /* a copy, to ask what is allocated */
    const struct segment *head;
    uint64_t bytes;
    struct segment_table tables[SEGMENT_TABLES]; /* the directory as it was checked */
    struct extent extents[SEGMENT_TABLES];
};

/* Checks the descriptor (see memfd_check) and the header: OPSTREAM_E_MAGIC, _E_VERSION, _E_SIZE, _E_LAYOUT, _E_SYSTEM. Keeps a copy of `fd`,
 * not `fd` itself. Each text of the identity has its end, and its kind is one there is. Never blocks. */
int mapping_open(int fd, uint64_t max_bytes, struct mapping *ret_mapping, struct segment_identity *ret_identity);

/* Unmaps and closes. */
void mapping_free(struct mapping *mapping);

/* How many rows of a table are filled; loads after this see them as they were published. OPSTREAM_E_LAYOUT: more than it has. */
int mapping_used(const struct mapping *mapping, enum segment_table_kind kind, uint64_t *ret_rows);

/* `bytes` from the beginning of a row that the table has; NULL when there is no memory behind them. */
const void *mapping_row(struct mapping *mapping, enum segment_table_kind kind, uint64_t row, uint64_t bytes);

typedef uint64_t __attribute__((may_alias)) word;

static inline uint64_t load_word(const void *from) {
    return __atomic_load_n((const word *)from, __ATOMIC_RELAXED);
}

static inline uint32_t load_u32(const uint32_t *from) {
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

/* Each word once: what has been checked can't have changed when it is used. */
static inline void copy_words(void *to, const void *from, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof(word); i++) {
        ((word *)to)[i] = load_word((const word *)from + i);
    }
}

#endif
