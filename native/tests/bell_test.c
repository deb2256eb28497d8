#include "bell.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static bool rings(const struct bell *bell) {
    struct pollfd fd = {.fd = bell_fd(bell), .events = POLLIN};
    CHECK(fd.fd >= 0);
    return poll(&fd, 1, 0) == 1;
}

static void test_ring(void) {
    struct bell bell;
    CHECK_EQ_INT(bell_make(&bell), 0);
    CHECK(!rings(&bell));
    for (int i = 0; i < 10000; i++) {
        bell_ring(&bell); /* never blocks, however often */
    }
    CHECK(rings(&bell));
    bell_silence(&bell);
    CHECK(!rings(&bell));
    bell_ring(&bell);
    CHECK(rings(&bell));
    bell_close(&bell);
    bell_close(&bell);
}

/* The application has a connection of its own under one of the numbers. */
static void test_number_of_somebody_else(bool heard) {
    struct bell bell;
    int other[2];
    char byte;
    CHECK_EQ_INT(bell_make(&bell), 0);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, other) == 0);
    int number = heard ? bell.heard_fd : bell.rung_fd;
    CHECK(dup2(other[0], number) == number);
    CHECK(send(other[1], "", 1, 0) == 1);
    CHECK_EQ_INT(bell_fd(&bell), -1);
    bell_ring(&bell);
    bell_silence(&bell);
    bell_close(&bell);
    CHECK_EQ_INT(recv(other[1], &byte, 1, 0), -1); /* nothing was written to it */
    CHECK_EQ_INT(recv(number, &byte, 1, 0), 1);    /* nor read from it, and it is open */
    close(number);
    close(other[0]);
    close(other[1]);
}

int main(void) {
    struct bell none = {0};
    bell_close(&none);
    test_ring();
    test_number_of_somebody_else(true);
    test_number_of_somebody_else(false);
    return 0;
}
