#include "arena.h"

#include <stdlib.h>
#include <string.h>

struct arena_block {
    struct arena_block *next;
    size_t used;
    _Alignas(16) char bytes[ARENA_BLOCK_BYTES];
};

void *arena_take(struct arena *arena, size_t bytes) {
    struct arena_block *block = arena->blocks;
    if (bytes > ARENA_BLOCK_BYTES) {
        return NULL;
    }
    bytes = (bytes + 15) / 16 * 16;
    if (!block || ARENA_BLOCK_BYTES - block->used < bytes) {
        block = malloc(sizeof(*block));
        if (!block) {
            return NULL;
        }
        block->next = arena->blocks;
        block->used = 0;
        arena->blocks = block;
    }
    void *taken = block->bytes + block->used;
    block->used += bytes;
    return taken;
}

const char *arena_text(struct arena *arena, const char *text, size_t length) {
    char *kept = arena_take(arena, length + 1);
    if (!kept) {
        return NULL;
    }
    memcpy(kept, text, length);
    kept[length] = '\0';
    return kept;
}

void arena_free(struct arena *arena) {
    while (arena->blocks) {
        struct arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}
