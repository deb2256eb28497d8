/* headroom.h: whether the process can bear the vendor's profiler, which takes about 117 MB and 19 threads with the first subscription.
 * Any thread. */
#ifndef OPSTREAM_HEADROOM_H
#define OPSTREAM_HEADROOM_H

#include <stdbool.h>
#include <stdint.h>

#define HEADROOM_MEMORY_BYTES (UINT64_C(256) << 20)
#define HEADROOM_THREADS 64u

struct headroom {
    uint64_t memory_bytes; /* UINT64_MAX: no limit, or none that can be told */
    uint64_t threads;
};

/* The least that any limit leaves: of the cgroups (version 1 and 2; `cgroups` is a file like /proc/self/cgroup, `root` where they are
 * mounted) and their ancestors, file cache that can be had back not counted; and of RLIMIT_NPROC, of which at least this process's own
 * threads are taken. */
void headroom_measure(const char *cgroups, const char *root, struct headroom *ret_headroom);

/* This process's, against the two figures above. */
bool headroom_enough(void);

#endif
