/* arena.h: memory that is taken piece by piece and freed all at once. Begins as zeros. */
#ifndef OPSTREAM_ARENA_H
#define OPSTREAM_ARENA_H

#include <stddef.h>

#define ARENA_BLOCK_BYTES ((size_t)256 << 10)

struct arena {
    struct arena_block *blocks;
};

/* At most ARENA_BLOCK_BYTES, aligned to 16, not cleared. NULL: no memory. */
void *arena_take(struct arena *arena, size_t bytes);

/* A copy with a NUL behind it. NULL: no memory. */
const char *arena_text(struct arena *arena, const char *text, size_t length);

void arena_free(struct arena *arena);

#endif
