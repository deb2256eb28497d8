#include "bell.h"

#include <sys/socket.h>
#include <unistd.h>

#include "opstream.h"

int bell_make(struct bell *ret_bell) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        return OPSTREAM_E_SYSTEM;
    }
    int heard_fd = descriptor_raise(ends[0]), rung_fd = descriptor_raise(ends[1]);
    *ret_bell = (struct bell){heard_fd, rung_fd, descriptor_identify(heard_fd), descriptor_identify(rung_fd)};
    return OPSTREAM_OK;
}

void bell_close(struct bell *bell) {
    if (descriptor_is(bell->heard_fd, &bell->heard)) {
        close(bell->heard_fd);
    }
    if (descriptor_is(bell->rung_fd, &bell->rung)) {
        close(bell->rung_fd);
    }
    *bell = (struct bell){0};
}

void bell_ring(const struct bell *bell) {
    if (descriptor_is(bell->rung_fd, &bell->rung)) {
        send(bell->rung_fd, "", 1, MSG_NOSIGNAL);
    }
}

int bell_fd(const struct bell *bell) {
    return descriptor_is(bell->heard_fd, &bell->heard) && descriptor_is(bell->rung_fd, &bell->rung) ? bell->heard_fd : -1;
}

void bell_silence(const struct bell *bell) {
    char rung;
    while (descriptor_is(bell->heard_fd, &bell->heard) && recv(bell->heard_fd, &rung, sizeof rung, 0) > 0) {
    }
}
