#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "check.h"
#include "clock.h"
#include "link.h"

#define STRANGER 65534

static char folder[] = "/tmp/opstream-link-XXXXXX";
static char path[128];
static struct segment_writer writer;

/* ---- A daemon ------------------------------------------------------------------------------------------------------------------------ */

static int listen_at(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    unlink(path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(fd, 4) == 0);
    return fd;
}

static void say(int fd, uint16_t version, uint16_t type) {
    struct opstream_message message = {.version = version, .type = type};
    uint8_t bytes[OPSTREAM_MESSAGE_BYTES];
    CHECK_EQ_INT(opstream_message_encode(&message, bytes), 0);
    CHECK(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) == sizeof bytes);
}

/* What comes, with the descriptor that comes along (-1: none). */
static struct opstream_message hear(int fd, int *ret_fd) {
    uint8_t bytes[OPSTREAM_MESSAGE_BYTES];
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec data = {.iov_base = bytes, .iov_len = sizeof bytes};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct opstream_message message;
    ssize_t length = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
    CHECK_EQ_INT(length, OPSTREAM_MESSAGE_BYTES);
    CHECK_EQ_INT(opstream_message_parse(bytes, sizeof bytes, &message), 0);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    *ret_fd = -1;
    if (rights) {
        memcpy(ret_fd, CMSG_DATA(rights), sizeof *ret_fd);
    }
    return message;
}

static void check_hello(int fd) {
    int segment;
    struct opstream_message hello = hear(fd, &segment);
    CHECK_EQ_INT(hello.version, OPSTREAM_PROTOCOL_VERSION);
    CHECK_EQ_INT(hello.type, OPSTREAM_MESSAGE_HELLO);
    CHECK(memcmp(hello.uuid, writer.base->header.identity.uuid, sizeof hello.uuid) == 0);
    CHECK_EQ_U64(hello.kind, OPSTREAM_KIND_HOSTED);
    CHECK_EQ_U64(hello.segment_bytes, writer.bytes);
    CHECK_EQ_STR(hello.hosted_name, "resnet50");
    CHECK_EQ_STR(hello.config_digest, "0123456789abcdef");
    struct stat sent, own;
    CHECK(fstat(segment, &sent) == 0 && fstat(writer.fd, &own) == 0);
    CHECK_EQ_U64(sent.st_ino, own.st_ino);
    close(segment);
}

/* ---- A publisher's side -------------------------------------------------------------------------------------------------------------- */

static struct link *make_link(uint32_t daemon_uid) {
    struct link *link;
    CHECK_EQ_INT(link_new(path, daemon_uid, &writer, &link), 0);
    return link;
}

static int fd_of(const struct link *link) {
    int fd;
    short events;
    uint64_t deadline_ns;
    link_wants(link, &fd, &events, &deadline_ns);
    return fd;
}

static uint64_t deadline_of(const struct link *link) {
    int fd;
    short events;
    uint64_t deadline_ns;
    link_wants(link, &fd, &events, &deadline_ns);
    return deadline_ns;
}

/* Waits for what the daemon has done, and lets the link see it. */
static void step_when_readable(struct link *link, uint64_t now_ns) {
    struct pollfd poll_fd = {.events = POLLIN};
    uint64_t deadline_ns;
    link_wants(link, &poll_fd.fd, &poll_fd.events, &deadline_ns);
    CHECK_EQ_INT(poll_fd.events, POLLIN);
    CHECK(poll(&poll_fd, 1, 10000) == 1);
    link_step(link, now_ns);
}

/* ---- Tests: the clock is ours -------------------------------------------------------------------------------------------------------- */

static const uint64_t second = CLOCK_SECOND_NS;

static void test_long_path(void) {
    char longer[200];
    struct link *link;
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    CHECK_EQ_INT(link_new(longer, UINT32_MAX, &writer, &link), OPSTREAM_E_INVALID);
}

static void test_nobody_there(void) {
    struct link *link = make_link(UINT32_MAX);
    unlink(path);
    uint64_t now = 100 * second;
    link_step(link, now);
    CHECK_EQ_INT(link_state(link), OPSTREAM_LINK_DOWN);
    CHECK_EQ_INT(fd_of(link), -1);
    for (int attempt = 0; attempt < 20; attempt++) {
        uint64_t next = deadline_of(link);
        CHECK(next >= now + second - second / 10 && next <= now + second);
        now = next;
        link_step(link, now);
    }
    link_free(link);
}

static void test_life_of_a_connection(void) {
    int listener = listen_at();
    struct link *link = make_link(UINT32_MAX);
    uint64_t now = 100 * second;
    link_step(link, now);
    int daemon = accept(listener, NULL, NULL);
    CHECK(daemon >= 0);
    check_hello(daemon);
    CHECK_EQ_INT(link_state(link), OPSTREAM_LINK_DOWN);
    CHECK_EQ_U64(deadline_of(link), UINT64_MAX);

    say(daemon, OPSTREAM_PROTOCOL_VERSION, 999); /* from a later daemon: not for us */
    step_when_readable(link, now);
    CHECK(fd_of(link) >= 0);
    say(daemon, OPSTREAM_PROTOCOL_VERSION, OPSTREAM_MESSAGE_WELCOME);
    step_when_readable(link, now);
    CHECK_EQ_INT(link_state(link), OPSTREAM_LINK_UP);

    /* The daemon is restarted: a connection that had lasted is made anew at once, one that had not after a second. */
    now += 5 * second;
    close(daemon);
    step_when_readable(link, now);
    daemon = accept(listener, NULL, NULL);
    CHECK(daemon >= 0);
    check_hello(daemon);
    close(daemon);
    step_when_readable(link, now);
    CHECK_EQ_INT(link_state(link), OPSTREAM_LINK_DOWN);
    CHECK(accept(listener, NULL, NULL) < 0);
    now = deadline_of(link);
    link_step(link, now);
    daemon = accept(listener, NULL, NULL);
    CHECK(daemon >= 0);
    check_hello(daemon);

    link_free(link);
    int none;
    struct opstream_message bye = hear(daemon, &none);
    CHECK_EQ_INT(bye.type, OPSTREAM_MESSAGE_BYE);
    CHECK_EQ_INT(none, -1);
    close(daemon);
    close(listener);
}

static void test_refusal(uint16_t version, uint16_t type) {
    int listener = listen_at();
    struct link *link = make_link(UINT32_MAX);
    uint64_t now = 100 * second;
    link_step(link, now);
    int daemon = accept(listener, NULL, NULL);
    CHECK(daemon >= 0);
    check_hello(daemon);
    say(daemon, version, type);
    step_when_readable(link, now);
    CHECK_EQ_INT(link_state(link), OPSTREAM_LINK_REFUSED);
    CHECK_EQ_INT(fd_of(link), -1);
    CHECK(deadline_of(link) >= now + 30 * second && deadline_of(link) <= now + 33 * second);
    link_step(link, deadline_of(link) - 1);
    CHECK(accept(listener, NULL, NULL) < 0);
    link_step(link, deadline_of(link));
    close(daemon);
    daemon = accept(listener, NULL, NULL);
    CHECK(daemon >= 0);
    check_hello(daemon);
    link_free(link);
    close(daemon);
    close(listener);
}

static void test_garbage(const void *bytes, size_t length) {
    int listener = listen_at();
    struct link *link = make_link(UINT32_MAX);
    link_step(link, 100 * second);
    int daemon = accept(listener, NULL, NULL);
    CHECK(daemon >= 0);
    check_hello(daemon);
    CHECK(send(daemon, bytes, length, 0) == (ssize_t)length);
    step_when_readable(link, 100 * second);
    CHECK_EQ_INT(fd_of(link), -1);
    CHECK_EQ_INT(link_state(link), OPSTREAM_LINK_DOWN);
    link_free(link);
    close(daemon);
    close(listener);
}

/* The listener's queue is full: connect would block. */
static void test_busy_daemon(void) {
    int listener = listen_at(), others[64];
    size_t count = 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    for (;; count++) {
        CHECK(count < sizeof others / sizeof *others);
        others[count] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
        if (connect(others[count], (struct sockaddr *)&address, sizeof address) != 0) {
            CHECK_EQ_INT(errno, EAGAIN);
            break;
        }
    }
    struct link *link = make_link(UINT32_MAX);
    link_step(link, 100 * second);
    CHECK_EQ_INT(fd_of(link), -1);
    for (size_t i = 0; i <= count; i++) {
        close(others[i]);
    }
    close(listener);
    link_free(link);
}

/* The application has put a file of its own where the socket was, or the segment. */
static void test_stolen_numbers(void) {
    int listener = listen_at();
    struct link *link = make_link(UINT32_MAX);
    link_step(link, 100 * second);
    int daemon = accept(listener, NULL, NULL);
    CHECK(daemon >= 0);
    check_hello(daemon);
    int pipe_fds[2], number = fd_of(link);
    CHECK(pipe(pipe_fds) == 0);
    CHECK(dup2(pipe_fds[1], number) == number);
    link_step(link, 100 * second);
    CHECK_EQ_INT(fd_of(link), -1);
    CHECK(fcntl(number, F_GETFD) >= 0); /* it is theirs: not closed */
    close(number);

    int kept = dup(writer.fd);
    CHECK(dup2(pipe_fds[1], writer.fd) == writer.fd);
    close(daemon);
    link_step(link, 200 * second);
    daemon = accept(listener, NULL, NULL);
    CHECK(daemon >= 0);
    uint8_t byte;
    CHECK_EQ_INT(recv(daemon, &byte, 1, 0), 0); /* no hello, but the end */
    CHECK(dup2(kept, writer.fd) == writer.fd);
    close(kept);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    close(daemon);
    close(listener);
    link_free(link);
}

/* Somebody else's program sits where the daemon should: it learns nothing, unless it is the configured one. */
static void test_strangers_daemon(uint32_t daemon_uid, bool trusted) {
    if (geteuid() != 0) {
        fprintf(stderr, "not root: a stranger's listener can't be made\n");
        return;
    }
    int ready[2], go[2];
    CHECK(pipe(ready) == 0 && pipe(go) == 0);
    unlink(path);
    pid_t child = fork();
    CHECK(child >= 0);
    char byte = 0;
    if (child == 0) {
        close(go[1]);
        CHECK(setuid(STRANGER) == 0);
        int listener = listen_at();
        CHECK(write(ready[1], &byte, 1) == 1);
        CHECK(read(go[0], &byte, 1) == 1);
        int daemon = accept(listener, NULL, NULL);
        CHECK(daemon >= 0);
        if (trusted) {
            int segment; /* the mapping didn't come along: a look at the type must do */
            CHECK_EQ_INT(hear(daemon, &segment).type, OPSTREAM_MESSAGE_HELLO);
            CHECK(segment >= 0);
        } else {
            CHECK_EQ_INT(recv(daemon, &byte, 1, 0), 0);
        }
        _exit(0);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    struct link *link = make_link(daemon_uid);
    link_step(link, 100 * second);
    CHECK((fd_of(link) >= 0) == trusted);
    CHECK(write(go[1], &byte, 1) == 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_EQ_INT(WEXITSTATUS(status), 0);
    link_free(link);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(go[i]);
    }
    unlink(path);
}

int main(void) {
    CHECK(mkdtemp(folder));
    CHECK(chmod(folder, 0777) == 0);
    snprintf(path, sizeof path, "%s/agent.sock", folder);
    struct segment_identity identity = {.kind = OPSTREAM_KIND_HOSTED};
    strcpy(identity.app, "test");
    strcpy(identity.hosted_name, "resnet50");
    strcpy(identity.config_digest, "0123456789abcdef");
    CHECK_EQ_INT(segment_create(&identity, 64, &writer), 0);

    uint8_t longer[OPSTREAM_MESSAGE_BYTES + 1];
    struct opstream_message welcome = {.version = OPSTREAM_PROTOCOL_VERSION, .type = OPSTREAM_MESSAGE_WELCOME};
    memset(longer, 0, sizeof longer);
    CHECK_EQ_INT(opstream_message_encode(&welcome, longer), 0);

    test_long_path();
    test_nobody_there();
    test_life_of_a_connection();
    test_refusal(OPSTREAM_PROTOCOL_VERSION, OPSTREAM_MESSAGE_REFUSE);
    test_refusal(OPSTREAM_PROTOCOL_VERSION + 1, OPSTREAM_MESSAGE_WELCOME);
    test_garbage("hello", 5);
    test_garbage(longer, sizeof longer);
    test_busy_daemon();
    test_stolen_numbers();
    test_strangers_daemon(UINT32_MAX, false);
    test_strangers_daemon(STRANGER, true);

    segment_free(&writer);
    unlink(path);
    CHECK(rmdir(folder) == 0);
    return 0;
}
