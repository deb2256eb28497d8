#include "journal.h"

#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct journal {
    uint64_t magic;
    uint64_t version;
    uint64_t slots;
    uint64_t slot_bytes;
    struct {
        char name[24];
        _Atomic uint64_t value;
    } slot[JOURNAL_SLOTS];
};
_Static_assert(sizeof(struct journal) == JOURNAL_BYTES, "the file's layout is public");

static const char *const counter_names[JOURNAL_FAULTS] = {
    "records_made", "keypoints_made", "records_written", "records_lost",   "strings_made",
    "strings_read", "getter_calls",   "getter_ns",       "producer_waits", "writer_blocked_ns",
};

static struct journal in_memory;
static struct journal *journal = &in_memory;

static struct journal *map_file(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        return NULL;
    }
    void *map = MAP_FAILED;
    if (ftruncate(fd, JOURNAL_BYTES) == 0) {
        map = mmap(NULL, JOURNAL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    int error = errno;
    close(fd);
    errno = error;
    return map == MAP_FAILED ? NULL : map;
}

void journal_open(void) {
    const char *path = getenv("OPSTREAM_SIM_JOURNAL");
    if (path && *path) {
        struct journal *mapped = map_file(path);
        if (mapped) {
            journal = mapped;
        } else {
            fprintf(stderr, "OPSTREAM_SIM_JOURNAL: %s: %s\n", path, strerror(errno));
        }
    }
    /* Every process that shares the file writes the same bytes here. */
    journal->magic = JOURNAL_MAGIC;
    journal->version = 1;
    journal->slots = JOURNAL_SLOTS;
    journal->slot_bytes = sizeof journal->slot[0];
    for (unsigned i = 0; i < JOURNAL_FAULTS; i++) {
        snprintf(journal->slot[i].name, sizeof journal->slot[i].name, "%s", counter_names[i]);
    }
    for (unsigned kind = 0; kind < FAULT_KINDS; kind++) {
        snprintf(journal->slot[JOURNAL_FAULTS + kind].name, sizeof journal->slot[0].name, "fault.%s", fault_name(kind));
    }
}

void journal_add(unsigned counter, uint64_t value) {
    atomic_fetch_add_explicit(&journal->slot[counter].value, value, memory_order_relaxed);
}
