#include "device_pipe.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "descriptor.h"

static struct device_pipe {
    int write_end; /* the vendor's, see above */
    struct descriptor_identity identity;
    size_t capacity_bytes;
} pipes[DEVICES_MAX] = {[0 ... DEVICES_MAX - 1] = {.write_end = -1}};

/* The vendor's writer thread reads the int while we write it. */
static int write_end_get(const struct device_pipe *pipe) {
    return __atomic_load_n(&pipe->write_end, __ATOMIC_ACQUIRE);
}

static void write_end_set(struct device_pipe *pipe, int fd) {
    __atomic_store_n(&pipe->write_end, fd, __ATOMIC_RELEASE);
}

static bool is_open(const struct device_pipe *pipe) {
    int fd = write_end_get(pipe);
    return fd >= 0 && descriptor_is(fd, &pipe->identity);
}

/* Bytes that this process's pipes may still take. */
static size_t budget_bytes(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/sys/fs/pipe-user-pages-soft", "re");
    if (file) {
        if (fscanf(file, "%lu", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    if (pages == 0) { /* no limit, or none that can be told */
        return SIZE_MAX;
    }
    size_t budget = pages / 2 * (size_t)sysconf(_SC_PAGESIZE), taken = 0;
    for (uint32_t device = 0; device < DEVICES_MAX; device++) {
        if (is_open(&pipes[device])) {
            taken += pipes[device].capacity_bytes;
        }
    }
    return taken < budget ? budget - taken : 0;
}

static size_t enlarge(int fd) {
    static const int sizes[] = {1 << 20, 1 << 18, 1 << 16};
    size_t budget = budget_bytes();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if ((size_t)sizes[i] <= budget && fcntl(fd, F_SETPIPE_SZ, sizes[i]) >= 0) {
            break;
        }
    }
    int had = fcntl(fd, F_GETPIPE_SZ);
    return had > 0 ? (size_t)had : 0;
}

int device_pipe_open(uint32_t device, struct reader *reader) {
    struct device_pipe *pipe = &pipes[device];
    if (is_open(pipe)) {
        return OPSTREAM_OK;
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return OPSTREAM_E_SYSTEM;
    }
    size_t capacity_bytes = enlarge(ends[0]);
    int status = reader_add_pipe(reader, device, ends[0], capacity_bytes);
    close(ends[0]);
    if (status != OPSTREAM_OK) {
        close(ends[1]);
        return status;
    }
    int write_end = descriptor_raise(ends[1]);
    pipe->identity = descriptor_identify(write_end);
    pipe->capacity_bytes = capacity_bytes;
    write_end_set(pipe, write_end);
    return OPSTREAM_OK;
}

int *device_pipe_write_end(uint32_t device) {
    return &pipes[device].write_end;
}

void device_pipe_check(uint32_t device) {
    if (!is_open(&pipes[device])) {
        write_end_set(&pipes[device], -1);
    }
}

void device_pipe_close(uint32_t device) {
    struct device_pipe *pipe = &pipes[device];
    int fd = is_open(pipe) ? write_end_get(pipe) : -1;
    write_end_set(pipe, -1);
    if (fd >= 0) {
        close(fd);
    }
}

void device_pipes_close(void) {
    for (uint32_t device = 0; device < DEVICES_MAX; device++) {
        device_pipe_close(device);
    }
}
