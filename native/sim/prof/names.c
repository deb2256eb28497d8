#include "names.h"

#include "acl/acl_base.h"
#include "journal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define REGION_BYTES ((size_t)1 << 20)
#define MIN_CLASS 6u /* blocks are powers of two from 64 bytes */
#define MAX_CLASS 40u
#define FIRST_BUCKETS ((size_t)1 << 12)

enum refusal { REFUSE_NOT, REFUSE_ONCE, REFUSE_ALWAYS };

struct entry {
    uint64_t index;
    struct entry *next;
    uint32_t offset[2]; /* of each string in `text`; UINT32_MAX once it was taken */
    uint8_t class;
    uint8_t refusal;
    char text[];
};

/* Mapped on its own, not by malloc, so that the exit handler can take it away. */
struct region {
    struct region *next;
    size_t bytes;
    size_t used;
};

struct block {
    struct block *next;
};

struct names {
    struct entry **buckets;
    size_t bucket_count; /* a power of two */
    size_t entry_count;
    uint64_t next_index;
    struct block *free_blocks[MAX_CLASS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct region *regions; /* newest first */
static struct names *table;    /* in the first region: built with the first record */
static bool torn_down;

static void map_region(size_t need) {
    size_t bytes = need + sizeof(struct region) > REGION_BYTES ? (need + sizeof(struct region) + 4095) / 4096 * 4096 : REGION_BYTES;
    struct region *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (region == MAP_FAILED) {
        abort();
    }
    region->next = regions;
    region->bytes = bytes;
    region->used = sizeof *region;
    regions = region;
}

static unsigned class_of(size_t bytes) {
    unsigned class = MIN_CLASS;
    while ((size_t)1 << class < bytes) {
        class++;
    }
    return class;
}

static void *take_block(unsigned class) {
    size_t bytes = (size_t)1 << class;
    if (table && table->free_blocks[class]) {
        struct block *block = table->free_blocks[class];
        table->free_blocks[class] = block->next;
        return block;
    }
    if (!regions || regions->bytes - regions->used < bytes) {
        map_region(bytes);
    }
    void *block = (char *)regions + regions->used;
    regions->used += bytes;
    return block;
}

static void give_block(void *memory, unsigned class) {
    struct block *block = memory;
    block->next = table->free_blocks[class];
    table->free_blocks[class] = block;
}

static struct entry **make_buckets(size_t count) {
    struct entry **buckets = take_block(class_of(count * sizeof *buckets));
    memset(buckets, 0, count * sizeof *buckets);
    return buckets;
}

/* A fork while another thread holds the lock would leave the child's exit waiting for ever. */
static void lock_for_fork(void) {
    pthread_mutex_lock(&lock);
}

static void unlock_after_fork(void) {
    pthread_mutex_unlock(&lock);
}

static void tear_down(void) {
    pthread_mutex_lock(&lock);
    torn_down = true;
    for (struct region *region = regions; region;) {
        struct region *next = region->next;
        mprotect(region, region->bytes, PROT_NONE);
        region = next;
    }
    pthread_mutex_unlock(&lock);
}

static void build(void) {
    unsigned class = class_of(sizeof *table);
    struct names *built = take_block(class);
    memset(built, 0, sizeof *built);
    built->bucket_count = FIRST_BUCKETS;
    built->next_index = 1;
    table = built;
    table->buckets = make_buckets(FIRST_BUCKETS);
    pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
    if (atexit(tear_down) != 0) {
        abort();
    }
}

static void grow(void) {
    size_t count = table->bucket_count * 2;
    struct entry **buckets = make_buckets(count);
    for (size_t i = 0; i < table->bucket_count; i++) {
        for (struct entry *entry = table->buckets[i]; entry;) {
            struct entry *next = entry->next;
            entry->next = buckets[entry->index & (count - 1)];
            buckets[entry->index & (count - 1)] = entry;
            entry = next;
        }
    }
    give_block(table->buckets, class_of(table->bucket_count * sizeof *buckets));
    table->buckets = buckets;
    table->bucket_count = count;
}

/* The link that leads to the entry, or to NULL. */
static struct entry **find(uint64_t index) {
    struct entry **link = &table->buckets[index & (table->bucket_count - 1)];
    while (*link && (*link)->index != index) {
        link = &(*link)->next;
    }
    return link;
}

uint64_t names_add(const char *name, const char *type) {
    size_t name_bytes = strlen(name) + 1;
    size_t type_bytes = strlen(type) + 1;
    unsigned class = class_of(sizeof(struct entry) + name_bytes + type_bytes);

    pthread_mutex_lock(&lock);
    if (!table) {
        build();
    }
    if (table->entry_count == table->bucket_count) {
        grow();
    }
    struct entry *entry = take_block(class);
    entry->index = table->next_index++;
    entry->offset[NAMES_NAME] = 0;
    entry->offset[NAMES_TYPE] = (uint32_t)name_bytes;
    entry->class = (uint8_t)class;
    entry->refusal = REFUSE_NOT;
    memcpy(entry->text, name, name_bytes);
    memcpy(entry->text + name_bytes, type, type_bytes);
    struct entry **bucket = &table->buckets[entry->index & (table->bucket_count - 1)];
    entry->next = *bucket;
    *bucket = entry;
    table->entry_count++;
    uint64_t index = entry->index;
    pthread_mutex_unlock(&lock);
    journal_add(JOURNAL_STRINGS_MADE, 2);
    return index;
}

void names_refuse(uint64_t index, bool always) {
    pthread_mutex_lock(&lock);
    /* A writer may still have records to write when the table is gone; only clients are to crash then. */
    struct entry *entry = torn_down ? NULL : *find(index);
    if (entry) {
        entry->refusal = always ? REFUSE_ALWAYS : REFUSE_ONCE;
    }
    pthread_mutex_unlock(&lock);
}

/* The status of looking for a string, which `ret_text` is then. */
static int look_up(struct entry *entry, enum names_text which, const char **ret_text) {
    if (!entry || entry->offset[which] == UINT32_MAX) {
        return ACL_ERROR_INVALID_PARAM;
    }
    if (entry->refusal != REFUSE_NOT) {
        if (entry->refusal == REFUSE_ONCE) {
            entry->refusal = REFUSE_NOT;
        }
        return ACL_ERROR_PROFILING_FAILURE;
    }
    *ret_text = entry->text + entry->offset[which];
    return 0;
}

int names_length(uint64_t index, enum names_text which, size_t *ret_bytes) {
    const char *string;
    pthread_mutex_lock(&lock);
    int status = table ? look_up(*find(index), which, &string) : ACL_ERROR_INVALID_PARAM;
    if (status == 0) {
        *ret_bytes = strlen(string) + 1;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static int take(struct entry **link, enum names_text which, char *text, size_t text_bytes) {
    struct entry *entry = *link;
    const char *string;
    int status = look_up(entry, which, &string);
    if (status) {
        return status;
    }
    size_t length = strlen(string);
    if (text_bytes < length || text_bytes == 0) {
        return ACL_ERROR_INVALID_PARAM;
    }
    memcpy(text, string, length);
    text[text_bytes - 1] = '\0';
    entry->offset[which] = UINT32_MAX;
    if (entry->offset[NAMES_NAME] == UINT32_MAX && entry->offset[NAMES_TYPE] == UINT32_MAX) {
        *link = entry->next;
        table->entry_count--;
        give_block(entry, entry->class);
    }
    return 0;
}

int names_take(uint64_t index, enum names_text which, char *text, size_t text_bytes) {
    pthread_mutex_lock(&lock);
    int status = table ? take(find(index), which, text, text_bytes) : ACL_ERROR_INVALID_PARAM;
    pthread_mutex_unlock(&lock);
    if (status == 0) {
        journal_add(JOURNAL_STRINGS_READ, 1);
    }
    return status;
}
