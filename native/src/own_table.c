#include "own_table.h"

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static bool close_between(unsigned first, unsigned last) {
    return syscall(SYS_close_range, first, last, 0u) == 0;
}

/* For kernels before 5.9. /proc/self would show the table that was left. */
static void close_listed(int kept) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/fd", syscall(SYS_gettid));
    DIR *list = opendir(path);
    if (list == NULL) {
        return;
    }
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != kept && fd != dirfd(list)) {
            close(fd);
        }
    }
    closedir(list);
}

bool own_table_enter(int kept) {
    if (unshare(CLONE_FILES) != 0) {
        return false;
    }
    bool closed = (kept == 0 || close_between(0, (unsigned)kept - 1)) && close_between((unsigned)kept + 1, UINT_MAX);
    if (!closed) {
        close_listed(kept);
    }
    return true;
}
