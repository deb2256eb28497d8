#include "channel.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "opstream.h"

int channel_open(struct channel *ret_channel) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        return OPSTREAM_E_SYSTEM;
    }
    ret_channel->control_fd = descriptor_raise(ends[0]);
    ret_channel->reader_fd = descriptor_raise(ends[1]);
    ret_channel->control_identity = descriptor_identify(ret_channel->control_fd);
    atomic_init(&ret_channel->ordered, 0);
    atomic_init(&ret_channel->done, 0);
    return OPSTREAM_OK;
}

static bool has_control(const struct channel *channel) {
    return descriptor_is(channel->control_fd, &channel->control_identity);
}

void channel_close_control(struct channel *channel) {
    if (has_control(channel)) {
        close(channel->control_fd);
    }
}

void channel_close_reader(struct channel *channel) {
    if (channel->reader_fd >= 0) {
        close(channel->reader_fd);
        channel->reader_fd = -1;
    }
}

union descriptor_message {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static bool send_order(const struct channel *channel, const void *order, size_t order_bytes, int fd) {
    union descriptor_message control = {0};
    struct iovec part = {.iov_base = (void *)order, .iov_len = order_bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    return has_control(channel) && sendmsg(channel->control_fd, &message, MSG_NOSIGNAL) == (ssize_t)order_bytes;
}

/* No descriptor is needed to wait for the reader: what it has done is in memory. */
static bool wait_done(struct channel *channel, uint32_t number, uint64_t timeout_ns) {
    uint64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
    for (;;) {
        uint32_t done = atomic_load_explicit(&channel->done, memory_order_acquire);
        if ((int32_t)(done - number) >= 0) {
            return true;
        }
        uint64_t now_ns = clock_monotonic_ns();
        if (now_ns >= deadline_ns) {
            return false;
        }
        uint64_t left_ns = deadline_ns - now_ns;
        struct timespec left = {.tv_sec = (time_t)(left_ns / CLOCK_SECOND_NS), .tv_nsec = (long)(left_ns % CLOCK_SECOND_NS)};
        syscall(SYS_futex, &channel->done, FUTEX_WAIT_PRIVATE, done, &left, NULL, 0);
    }
}

int channel_order(struct channel *channel, const void *order, size_t order_bytes, int fd, uint64_t timeout_ns) {
    uint32_t number = atomic_load_explicit(&channel->ordered, memory_order_relaxed) + 1;
    atomic_store_explicit(&channel->ordered, number, memory_order_release);
    if (!send_order(channel, order, order_bytes, fd)) {
        atomic_store_explicit(&channel->ordered, number - 1, memory_order_release);
        return OPSTREAM_E_SYSTEM;
    }
    return wait_done(channel, number, timeout_ns) ? OPSTREAM_OK : OPSTREAM_E_BUSY;
}

void channel_wake(struct channel *channel) {
    if (has_control(channel)) {
        send(channel->control_fd, "", 1, MSG_NOSIGNAL);
    }
}

bool channel_has_order(const struct channel *channel) {
    return atomic_load_explicit(&channel->ordered, memory_order_acquire) != atomic_load_explicit(&channel->done, memory_order_relaxed);
}

bool channel_next(struct channel *channel, void *ret_order, size_t order_bytes, int *ret_fd) {
    while (channel->reader_fd >= 0) {
        union descriptor_message control;
        struct iovec part = {.iov_base = ret_order, .iov_len = order_bytes};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        ssize_t bytes = recvmsg(channel->reader_fd, &message, MSG_CMSG_CLOEXEC);
        if (bytes == 0) {
            channel_close_reader(channel);
        }
        if (bytes <= 0) {
            return false;
        }
        if ((size_t)bytes == order_bytes) {
            struct cmsghdr *header = CMSG_FIRSTHDR(&message);
            *ret_fd = -1;
            if (header != NULL) {
                memcpy(ret_fd, CMSG_DATA(header), sizeof *ret_fd);
            }
            atomic_load_explicit(&channel->ordered, memory_order_acquire);
            return true;
        }
    }
    return false;
}

void channel_done(struct channel *channel) {
    atomic_fetch_add_explicit(&channel->done, 1, memory_order_release);
    syscall(SYS_futex, &channel->done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void channel_ring(struct channel *channel) {
    if (channel->reader_fd >= 0) {
        send(channel->reader_fd, "", 1, MSG_NOSIGNAL);
    }
}

void channel_silence(struct channel *channel) {
    char rung;
    while (has_control(channel) && recv(channel->control_fd, &rung, sizeof rung, 0) > 0) {
    }
}

int channel_bell_fd(const struct channel *channel) {
    return has_control(channel) ? channel->control_fd : -1;
}
