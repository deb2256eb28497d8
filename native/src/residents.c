#include "residents.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_text(int thread, const char *what, char *ret_text, size_t bytes) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", thread, what);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, ret_text, bytes - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    ret_text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static bool main_has_ended(void) {
    char text[256];
    const char *name_end = read_text(getpid(), "stat", text, sizeof text) ? strrchr(text, ')') : NULL;
    return name_end && strncmp(name_end, ") Z", 3) == 0;
}

static bool is_ours(int thread) {
    char name[32];
    return read_text(thread, "comm", name, sizeof name) && strncmp(name, RESIDENTS_OURS, strlen(RESIDENTS_OURS)) == 0;
}

bool residents_are_ours(void) {
    if (!main_has_ended()) {
        return false;
    }
    DIR *threads = opendir("/proc/self/task");
    bool ours = threads != NULL;
    for (struct dirent *entry; ours && (entry = readdir(threads)) != NULL;) {
        int thread = atoi(entry->d_name);
        ours = thread == 0 || thread == getpid() || is_ours(thread);
    }
    if (threads) {
        closedir(threads);
    }
    return ours;
}
