#include "link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "descriptor.h"

#define RETRY_NS (9 * CLOCK_SECOND_NS / 10)
#define REFUSED_RETRY_NS (30 * CLOCK_SECOND_NS)

enum phase { PHASE_APART, PHASE_GREETING /* connected, the hello is not sent yet */, PHASE_GREETED, PHASE_GONE };

struct link {
    struct sockaddr_un address;
    uint32_t daemon_uid;
    const struct segment_writer *writer;
    struct descriptor_identity socket;
    enum phase phase;
    int fd;
    uint64_t attempt_ns; /* of the next one */
    unsigned random;
    _Atomic int state;
};

int link_new(const char *socket_path, uint32_t daemon_uid, const struct segment_writer *writer, struct link **ret_link) {
    struct link *link = calloc(1, sizeof *link);
    if (!link) {
        return OPSTREAM_E_MEMORY;
    }
    if (strlen(socket_path) >= sizeof link->address.sun_path) {
        free(link);
        return OPSTREAM_E_INVALID;
    }
    link->address.sun_family = AF_UNIX;
    strcpy(link->address.sun_path, socket_path);
    link->daemon_uid = daemon_uid;
    link->writer = writer;
    link->fd = -1;
    memcpy(&link->random, writer->base->header.identity.uuid, sizeof link->random);
    atomic_init(&link->state, OPSTREAM_LINK_DOWN);
    *ret_link = link;
    return OPSTREAM_OK;
}

/* The time from `now_ns` to an attempt that is `pause_ns` away. */
static uint64_t after(struct link *link, uint64_t now_ns, uint64_t pause_ns) {
    return now_ns + pause_ns + pause_ns / 10 * (uint64_t)(rand_r(&link->random) % 1024) / 1024;
}

static void part(struct link *link, enum phase phase, int state) {
    /* A number that isn't our socket any more is somebody else's. */
    if (link->fd >= 0 && descriptor_is(link->fd, &link->socket)) {
        close(link->fd);
    }
    link->fd = -1;
    link->phase = phase;
    atomic_store(&link->state, state);
}

static void be_refused(struct link *link, uint64_t now_ns) {
    part(link, PHASE_APART, OPSTREAM_LINK_REFUSED);
    link->attempt_ns = after(link, now_ns, REFUSED_RETRY_NS);
}

static bool trusted(const struct link *link, int fd) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid() || (link->daemon_uid != UINT32_MAX && peer.uid == link->daemon_uid));
}

static void try_connect(struct link *link, uint64_t now_ns) {
    link->attempt_ns = after(link, now_ns, RETRY_NS);
    atomic_store(&link->state, OPSTREAM_LINK_DOWN);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    if (connect(fd, (const struct sockaddr *)&link->address, sizeof link->address) != 0 || !trusted(link, fd)) {
        close(fd);
        return;
    }
    link->fd = descriptor_raise(fd);
    link->socket = descriptor_identify(link->fd);
    link->phase = PHASE_GREETING;
}

/* `segment_fd` goes with it unless it is -1. */
static ssize_t send_message(const struct link *link, const struct opstream_message *message, int segment_fd) {
    uint8_t bytes[OPSTREAM_MESSAGE_BYTES];
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec data = {.iov_base = bytes, .iov_len = sizeof bytes};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};
    if (opstream_message_encode(message, bytes) != OPSTREAM_OK) {
        errno = EINVAL;
        return -1;
    }
    if (segment_fd >= 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(rights), &segment_fd, sizeof segment_fd);
    }
    return sendmsg(link->fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static struct opstream_message message_of(const struct link *link, enum opstream_message_type type) {
    const struct segment_identity *identity = &link->writer->base->header.identity;
    struct opstream_message message = {.version = OPSTREAM_PROTOCOL_VERSION, .type = (uint16_t)type};
    if (type == OPSTREAM_MESSAGE_HELLO) {
        message.kind = identity->kind;
        message.segment_bytes = link->writer->bytes;
        memcpy(message.uuid, identity->uuid, sizeof message.uuid);
        memcpy(message.hosted_name, identity->hosted_name, sizeof message.hosted_name);
        memcpy(message.config_digest, identity->config_digest, sizeof message.config_digest);
    }
    return message;
}

static void greet(struct link *link) {
    struct opstream_message hello = message_of(link, OPSTREAM_MESSAGE_HELLO);
    int segment_fd = segment_descriptor(link->writer);
    if (segment_fd < 0) {
        part(link, PHASE_APART, OPSTREAM_LINK_DOWN);
    } else if (send_message(link, &hello, segment_fd) >= 0) {
        link->phase = PHASE_GREETED;
    } else if (errno != EAGAIN && errno != EINTR) {
        part(link, PHASE_APART, OPSTREAM_LINK_DOWN);
    }
}

static void obey(struct link *link, const struct opstream_message *message, uint64_t now_ns) {
    if (message->version != OPSTREAM_PROTOCOL_VERSION || message->type == OPSTREAM_MESSAGE_REFUSE) {
        be_refused(link, now_ns);
    } else if (message->type == OPSTREAM_MESSAGE_WELCOME) {
        atomic_store(&link->state, OPSTREAM_LINK_UP);
    }
}

/* One message a step: poll shows when there is another. */
static void listen_to(struct link *link, uint64_t now_ns) {
    uint8_t bytes[OPSTREAM_MESSAGE_BYTES + 1]; /* one more, so that a longer packet shows */
    struct opstream_message message;
    ssize_t length = recv(link->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (length <= 0 || opstream_message_parse(bytes, (size_t)length, &message) != OPSTREAM_OK) {
        part(link, PHASE_APART, OPSTREAM_LINK_DOWN);
    } else {
        obey(link, &message, now_ns);
    }
}

void link_step(struct link *link, uint64_t now_ns) {
    if (link->fd >= 0 && !descriptor_is(link->fd, &link->socket)) {
        part(link, PHASE_APART, OPSTREAM_LINK_DOWN);
    }
    if (link->phase == PHASE_GREETED) {
        listen_to(link, now_ns);
    }
    if (link->phase == PHASE_APART && now_ns >= link->attempt_ns) {
        try_connect(link, now_ns);
    }
    if (link->phase == PHASE_GREETING) {
        greet(link);
    }
}

void link_wants(const struct link *link, int *ret_fd, short *ret_events, uint64_t *ret_deadline_ns) {
    *ret_fd = link->fd;
    *ret_events = link->phase == PHASE_GREETING ? POLLOUT : link->phase == PHASE_GREETED ? POLLIN : 0;
    *ret_deadline_ns = link->phase == PHASE_APART ? link->attempt_ns : UINT64_MAX;
}

int link_state(const struct link *link) {
    return atomic_load(&link->state);
}

void link_goodbye(struct link *link) {
    if (link->phase == PHASE_GREETED && descriptor_is(link->fd, &link->socket)) {
        struct opstream_message bye = message_of(link, OPSTREAM_MESSAGE_BYE);
        send_message(link, &bye, -1);
    }
    part(link, PHASE_GONE, OPSTREAM_LINK_DOWN);
}

void link_free(struct link *link) {
    if (!link) {
        return;
    }
    link_goodbye(link);
    free(link);
}
