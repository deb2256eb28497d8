/* How a process that publishes may end: by exit() while records flow, as a forked child, by a signal. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

#include "device_pipe.h"
#include "publishing.h"

/* LeakSanitizer looks into threads that still run when the process exits, and at times crashes over their thread-local storage. As the
 * first handler this one is the last to run: what is tested has happened. */
#ifdef __SANITIZE_ADDRESS__
static void leave_threads_alone(int status, void *unused) {
    (void)unused;
    fflush(NULL);
    _exit(status);
}

#define LEAVE_THREADS_ALONE() CHECK(on_exit(leave_threads_alone, NULL) == 0)
#else
#define LEAVE_THREADS_ALONE() ((void)0)
#endif

static opstream_publisher *loaded;
static uint32_t busy_model;

/* As fast as it goes, with so many records at most on their way: the vendor's queue holds more than a slow machine reads in a second. */
static void *execute_for_ever(void *limit) {
    uint64_t made = 0, under_way = *(const uint64_t *)limit;
    opstream_view *view = tally_open(opstream_publisher_segment(loaded));
    for (;;) {
        app_execute(0, busy_model, 10);
        made += 10 * (APP_OPERATORS + 1);
        while (tally_counters(view, false).records_recorded + under_way < made) {
            sched_yield();
        }
    }
    return NULL;
}

/* Returns when records flow, and the first of them have been counted. */
static void load(uint64_t under_way) {
    static uint64_t limit;
    limit = under_way;
    LEAVE_THREADS_ALONE();
    app_start();
    busy_model = app_load(0);
    loaded = open_publisher();
    subscribe(loaded, busy_model, 0, "model");
    pthread_t thread;
    opstream_view *view = tally_open(opstream_publisher_segment(loaded));
    CHECK(pthread_create(&thread, NULL, execute_for_ever, &limit) == 0);
    while (tally_counters(view, false).records_recorded < 5000) {
        sched_yield();
    }
    opstream_view_free(view);
}

static int test_exit_under_load(void) {
    load(400);
    return 3;
}

#ifndef __SANITIZE_THREAD__
/* More than exit() waits for: the rest is read, but not counted. */
static int test_exit_under_flood(void) {
    load(UINT64_MAX / 2);
    return 5;
}
#endif

static int test_exit_after_publisher(void) {
    load(400);
    opstream_publisher_close(loaded);
    return 4;
}

static int status_of(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int test_fork(void) {
    app_start();
    uint32_t model = app_load(0);
    opstream_publisher *publisher = open_publisher();
    opstream_view *view = tally_open(opstream_publisher_segment(publisher));
    subscribe(publisher, model, 0, "model");
    app_execute(0, model, 100);
    while (tally_counters(view, false).records_recorded == 0) {
        app_execute(0, model, 1);
    }
    /* What the child had printed isn't lost. */
    int output[2];
    CHECK(pipe(output) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int acl_error;
        CHECK_EQ_INT(opstream_publisher_subscribe(publisher, model, 0, "model", OPSTREAM_WAIT_FOREVER, &acl_error), OPSTREAM_E_STATE);
        CHECK_EQ_INT(opstream_publisher_unsubscribe(publisher, model, OPSTREAM_WAIT_FOREVER, &acl_error), OPSTREAM_E_STATE);
        CHECK_EQ_INT(*device_pipe_write_end(0), -1);
        opstream_publisher_close(publisher);
        FILE *file = fdopen(output[1], "w");
        fputs("words", file);
        exit(7);
    }
    close(output[1]);
    char words[16] = "";
    CHECK_EQ_INT(read(output[0], words, sizeof words - 1), 5);
    CHECK_EQ_STR(words, "words");
    CHECK_EQ_INT(status_of(child), 7);

    /* A child's child is one too. */
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            exit(8);
        }
        exit(status_of(grandchild));
    }
    CHECK_EQ_INT(status_of(child), 8);

    unsubscribe(publisher, model);
    struct view_model counted;
    tally_row(view, 0, "model", &counted);
    CHECK(tally_sum(counted.executions) >= 100);
    tally_app_model(view, 0, "model", tally_sum(counted.executions));

#ifndef __SANITIZE_THREAD__ /* which can't start threads in a child that was forked beside threads */
    /* And one that is forked when nothing is subscribed may have a publisher of its own. */
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        opstream_publisher *own = open_publisher();
        opstream_view *own_view = tally_open(opstream_publisher_segment(own));
        subscribe(own, model, 0, "model");
        app_execute(0, model, 20);
        unsubscribe(own, model);
        tally_app_model(own_view, 0, "model", 20);
        opstream_view_free(own_view);
        opstream_publisher_close(own);
        _exit(9);
    }
    CHECK_EQ_INT(status_of(child), 9);
#endif
    opstream_view_free(view);
    opstream_publisher_close(publisher);
    return 0;
}

static int channel[2];

static int publish_until_killed(void) {
    load(400);
    int segment = opstream_publisher_segment(loaded);
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    char byte = 0;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &segment, sizeof segment);
    CHECK(sendmsg(channel[1], &header, 0) == 1);
    for (;;) {
        pause();
    }
}

static void test_killed(void) {
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) == 0);
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        exit(publish_until_killed());
    }
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    char byte;
    int segment;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    close(channel[1]);
    CHECK(recvmsg(channel[0], &header, 0) == 1 && CMSG_FIRSTHDR(&header));
    memcpy(&segment, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof segment);
    opstream_view *view = tally_open(segment);
    while (tally_counters(view, false).records_recorded < 20000) {
        CHECK(waitpid(child, NULL, WNOHANG) == 0);
        sched_yield();
    }
    CHECK(kill(child, SIGKILL) == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    /* tally_counters checks that nothing is missing. What is in the histograms is what is recorded, or one more: killed between the two. */
    struct opstream_counters counters = tally_counters(view, true);
    struct view_model model;
    uint32_t row = tally_row(view, 0, "model", &model), models, rows;
    uint64_t counted = tally_sum(model.executions);
    CHECK_EQ_INT(view_rows(view, &models, &rows), 0);
    for (uint32_t i = 0; i < rows; i++) {
        struct view_series series;
        view_series(view, i, clock_monotonic_ns(), &series);
        CHECK_EQ_U64(view_identity(view, i)->model_row, row);
        counted += tally_sum(series.cells);
    }
    CHECK(counted == counters.records_recorded || counted == counters.records_recorded + 1);
    opstream_view_free(view);
    close(channel[0]);
}

int main(void) {
    CHECK_EQ_INT(run(test_exit_after_publisher), 4);
#ifndef __SANITIZE_THREAD__ /* once exit() has waited its second, the vendor's destructors and its unsubscribing race: theirs, not ours */
    CHECK_EQ_INT(run(test_exit_under_flood), 5);
#endif
    CHECK_EQ_INT(run(test_fork), 0);
    test_killed();
    for (int i = 0; i < 20; i++) {
        CHECK_EQ_INT(run(test_exit_under_load), 3);
    }
    return 0;
}
