#include "memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "opstream.h"

/* Newer than the oldest C library that this is built for. */
#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#define MFD_ALLOW_SEALING 2u
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_GET_SEALS 1034
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif
#define TMPFS_MAGIC 0x01021994 /* hugetlbfs has another one */

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* vm.memfd_noexec = 2 refuses memfds that could be executed; older kernels don't know the flag. */
static int create(void) {
    int fd = (int)syscall(SYS_memfd_create, "opstream", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? (int)syscall(SYS_memfd_create, "opstream", MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

int memfd_make(uint64_t bytes) {
    int low = create();
    if (low < 0) {
        return -1;
    }
    /* Out of the way of programs that count on low numbers, but not so high that the table of descriptors becomes large. */
    struct rlimit limit;
    int high = getrlimit(RLIMIT_NOFILE, &limit) ? 0 : (int)((limit.rlim_cur < 4096 ? limit.rlim_cur : 4096) / 4 * 3);
    int fd = fcntl(low, F_DUPFD_CLOEXEC, high);
    close(low);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes)) {
        close(fd);
        return -1;
    }
    return fd;
}

int memfd_seal(int fd) {
    if (!fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_FUTURE_WRITE)) {
        return 0;
    }
    return errno == EINVAL ? fcntl(fd, F_ADD_SEALS, SEALS) : -1;
}

/* Found out once, on a memfd of our own: version numbers say little about distributions' kernels. */
static int seals_wanted(void) {
    static atomic_int known;
    int seals = atomic_load_explicit(&known, memory_order_relaxed);
    if (seals) {
        return seals;
    }
    seals = SEALS;
    int fd = create();
    /* Without a memfd the question stays open, and the stricter answer holds. */
    bool lacking = fd >= 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) && errno == EINVAL;
    if (!lacking) {
        seals |= F_SEAL_FUTURE_WRITE;
    }
    if (fd >= 0) {
        close(fd);
        atomic_store_explicit(&known, seals, memory_order_relaxed);
    }
    return seals;
}

/* Seals first: they are the kernel's own answer, while a stat of somebody's file system can hang. */
int memfd_check(int fd, uint64_t max_bytes, uint64_t *ret_bytes) {
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0) {
        return OPSTREAM_E_NOT_MEMFD;
    }
    struct statfs file_system;
    struct stat status;
    if (fstatfs(fd, &file_system) || file_system.f_type != TMPFS_MAGIC || fstat(fd, &status) || !S_ISREG(status.st_mode)) {
        return OPSTREAM_E_NOT_MEMFD;
    }
    if ((uint64_t)status.st_size > max_bytes) {
        return OPSTREAM_E_SIZE;
    }
    int wanted = seals_wanted();
    if ((seals & wanted) != wanted) {
        return OPSTREAM_E_UNSEALED;
    }
    *ret_bytes = (uint64_t)status.st_size;
    return 0;
}

bool memfd_allocate(int fd, uint64_t offset, uint64_t bytes) {
    int failed;
    do {
        failed = fallocate(fd, 0, (off_t)offset, (off_t)bytes);
    } while (failed && errno == EINTR);
    return !failed;
}

uint64_t memfd_allocated_end(int fd, uint64_t offset) {
    if (lseek(fd, (off_t)offset, SEEK_DATA) != (off_t)offset) {
        return offset;
    }
    off_t end = lseek(fd, (off_t)offset, SEEK_HOLE);
    return end > (off_t)offset ? (uint64_t)end : offset;
}
