#include "own_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2u
#endif

#define NUMBERS_ABOVE 128 /* more descriptors than the engine ever has in the process's table */

static int compare(const void *a, const void *b) {
    int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

/* Between `first` and the number before `end`. */
static bool close_range_of(unsigned first, unsigned end) {
    return first == end || syscall(SYS_close_range, first, end - 1, 0u) == 0;
}

static bool close_around(const int *kept, size_t kept_count) {
    unsigned first = 0;
    bool closed = true;
    for (size_t i = 0; i < kept_count; i++) {
        closed &= close_range_of(first, (unsigned)kept[i]);
        first = (unsigned)kept[i] + 1;
    }
    return closed && close_range_of(first, UINT_MAX);
}

/* For kernels before 5.9. /proc/self would show the table that was left. */
static void close_listed(const int *kept, size_t kept_count) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/fd", syscall(SYS_gettid));
    DIR *list = opendir(path);
    if (list == NULL) {
        return;
    }
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(list) && bsearch(&fd, kept, kept_count, sizeof *kept, compare) == NULL) {
            close(fd);
        }
    }
    closedir(list);
}

/* Containers' usual filters refuse unshare whatever it is to share no longer, but not this one, which here closes nothing. */
static bool leave_table(void) {
    return unshare(CLONE_FILES) == 0 || syscall(SYS_close_range, UINT_MAX, UINT_MAX, CLOSE_RANGE_UNSHARE) == 0;
}

bool own_table_enter(int *kept, size_t kept_count) {
    if (!leave_table()) {
        return false;
    }
    qsort(kept, kept_count, sizeof *kept, compare);
    if (!close_around(kept, kept_count)) {
        close_listed(kept, kept_count);
    }
    return true;
}

int own_table_raise(int fd, int base) {
    int raised = fcntl(fd, F_DUPFD_CLOEXEC, base + NUMBERS_ABOVE);
    if (raised < 0) {
        return fd;
    }
    close(fd);
    return raised;
}
