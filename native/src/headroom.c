#include "headroom.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number after `key` at a line's start ("" = the file's first word) in a file of one folder; false when it isn't there, or is a word
 * ("max"). */
static bool read_number(const char *folder, const char *name, const char *key, uint64_t *ret_number) {
    char path[PATH_MAX], line[256];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        return false;
    }
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    bool found = false;
    size_t key_length = strlen(key);
    while (!found && fgets(line, sizeof line, file)) {
        found = strncmp(line, key, key_length) == 0 && sscanf(line + key_length, "%" SCNu64, ret_number) == 1;
    }
    fclose(file);
    return found;
}

/* Names of the files that a controller has in each version. `cache` is a line of memory.stat. */
struct controller {
    const char *limit, *used, *cache;
};

static const struct controller memory_v1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
static const struct controller memory_v2 = {"memory.max", "memory.current", "inactive_file "};
static const struct controller pids = {"pids.max", "pids.current", NULL};

static void take_limit(const struct controller *controller, const char *folder, uint64_t *free_amount) {
    uint64_t limit, used, cache;
    if (!read_number(folder, controller->limit, "", &limit) || !read_number(folder, controller->used, "", &used)) {
        return;
    }
    if (controller->cache && read_number(folder, "memory.stat", controller->cache, &cache)) {
        used -= cache < used ? cache : used;
    }
    uint64_t left = limit > used ? limit - used : 0;
    if (left < *free_amount) {
        *free_amount = left;
    }
}

/* A group and its ancestors up to the mount: each one's limit binds. Where the path names nothing (it is the host's, and we are in a
 * container) the mount itself is the container's own group. */
static void take_limits(const struct controller *controller, const char *mount, const char *group, uint64_t *free_amount) {
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= (int)sizeof folder) {
        return;
    }
    size_t mount_length = strlen(mount);
    for (;;) {
        take_limit(controller, folder, free_amount);
        char *slash = strrchr(folder + mount_length, '/');
        if (!slash) {
            return;
        }
        *slash = '\0';
    }
}

static bool has_word(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length) {
        if ((at == list || at[-1] == ',') && (at[length] == '\0' || at[length] == ',')) {
            return true;
        }
    }
    return false;
}

static void take_group(char *line, const char *root, struct headroom *headroom) {
    char mount[PATH_MAX];
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) {
        return;
    }
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (*controllers == '\0') {
        static const char *const mounts[] = {"", "/unified"}; /* the second where both versions are mounted */
        for (size_t i = 0; i < 2; i++) {
            snprintf(mount, sizeof mount, "%s%s", root, mounts[i]);
            take_limits(&memory_v2, mount, group, &headroom->memory_bytes);
            take_limits(&pids, mount, group, &headroom->threads);
        }
        return;
    }
    snprintf(mount, sizeof mount, "%s/%s", root, controllers);
    if (has_word(controllers, "memory")) {
        take_limits(&memory_v1, mount, group, &headroom->memory_bytes);
    }
    if (has_word(controllers, "pids")) {
        take_limits(&pids, mount, group, &headroom->threads);
    }
}

void headroom_measure(const char *cgroups, const char *root, struct headroom *ret_headroom) {
    struct headroom headroom = {.memory_bytes = UINT64_MAX, .threads = UINT64_MAX};
    FILE *file = fopen(cgroups, "re");
    if (file) {
        char *line = NULL;
        size_t line_bytes = 0;
        while (getline(&line, &line_bytes, file) > 0) {
            take_group(line, root, &headroom);
        }
        free(line);
        fclose(file);
    }
    struct rlimit limit;
    uint64_t own;
    if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        read_number("/proc/self", "status", "Threads:", &own)) {
        uint64_t left = limit.rlim_cur > own ? limit.rlim_cur - own : 0;
        if (left < headroom.threads) {
            headroom.threads = left;
        }
    }
    *ret_headroom = headroom;
}

bool headroom_enough(void) {
    struct headroom headroom;
    headroom_measure("/proc/self/cgroup", "/sys/fs/cgroup", &headroom);
    return headroom.memory_bytes >= HEADROOM_MEMORY_BYTES && headroom.threads >= HEADROOM_THREADS;
}
