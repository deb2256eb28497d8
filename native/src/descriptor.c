#include "descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel's table grows to the highest number in use, 8 bytes each: high enough is enough. */
#define NUMBERS_MAX 4096u

int descriptor_raise(int fd) {
    struct rlimit limit;
    rlim_t numbers = NUMBERS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < numbers) {
        numbers = limit.rlim_cur;
    }
    int raised = fcntl(fd, F_DUPFD_CLOEXEC, (int)(numbers - numbers / 4));
    if (raised < 0) {
        return fd;
    }
    close(fd);
    return raised;
}

struct descriptor_identity descriptor_identify(int fd) {
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        return (struct descriptor_identity){0};
    }
    return (struct descriptor_identity){.device = status.st_dev, .inode = status.st_ino};
}

bool descriptor_is(int fd, const struct descriptor_identity *identity) {
    struct descriptor_identity now = descriptor_identify(fd);
    return now.inode != 0 && now.device == identity->device && now.inode == identity->inode;
}
