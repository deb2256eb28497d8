#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tally.h"

static const struct opstream_publisher_config plain = {.kind = OPSTREAM_KIND_AGENT, .series_capacity = 256, .app = "test", .daemon_uid = UINT32_MAX};

static opstream_publisher *open_publisher(void) {
    struct opstream_publisher_config config = plain;
    opstream_publisher *publisher;
    config.library_path = app_library_path();
    int status = opstream_publisher_open(&config, &publisher);
    if (status != OPSTREAM_OK) {
        CHECK_FAIL("%s", opstream_status_name(status));
    }
    return publisher;
}

static void subscribe(opstream_publisher *publisher, uint32_t model_id, uint32_t device, const char *name) {
    int acl_error = 0, status = opstream_publisher_subscribe(publisher, model_id, device, name, &acl_error);
    if (status != OPSTREAM_OK) {
        CHECK_FAIL("%s: %s, %d", name, opstream_status_name(status), acl_error);
    }
}

static void unsubscribe(opstream_publisher *publisher, uint32_t model_id) {
    int acl_error = 0, status = opstream_publisher_unsubscribe(publisher, model_id, &acl_error);
    if (status != OPSTREAM_OK) {
        CHECK_FAIL("model %u: %s, %d", model_id, opstream_status_name(status), acl_error);
    }
}

/* LeakSanitizer looks into threads that still run when the process exits, and at times crashes over their thread-local storage. As the first handler this one is the last to run: what is tested has happened. */
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

/* A publisher is its process's: so each test has one of its own. Returns its exit status, or minus the signal that ended it. */
static int run(int (*test)(void)) {
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        exit(test());
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* ---- Counting ------------------------------------------------------------------------------------------------------------------------ */

static int test_configuration(void) {
    opstream_publisher *publisher, *second;
    struct opstream_publisher_config other = plain;
    other.library_path = "/nonexistent";
    CHECK_EQ_INT(opstream_publisher_open(&other, &publisher), OPSTREAM_E_LIBRARY);

    char longer[600];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    struct opstream_publisher_config configs[8];
    for (size_t i = 0; i < 8; i++) {
        configs[i] = plain;
    }
    configs[0].kind = 3;
    configs[1].series_capacity = 63;
    configs[2].series_capacity = 65537;
    configs[3].app = NULL;
    configs[4].app = longer;
    configs[5].labels = longer;
    configs[6].hosted_name = "only of hosted ones";
    configs[7].socket_path = longer;
    for (size_t i = 0; i < 8; i++) {
        configs[i].library_path = app_library_path();
        CHECK_EQ_INT(opstream_publisher_open(&configs[i], &publisher), OPSTREAM_E_INVALID);
    }
    publisher = open_publisher();
    other.library_path = app_library_path();
    CHECK_EQ_INT(opstream_publisher_open(&other, &second), OPSTREAM_E_BUSY);
    int acl_error = 0;
    CHECK_EQ_INT(opstream_publisher_subscribe(publisher, 1, 64, "model", &acl_error), OPSTREAM_E_INVALID);
    CHECK_EQ_INT(opstream_publisher_subscribe(publisher, 1, 0, longer, &acl_error), OPSTREAM_E_INVALID);
    CHECK_EQ_INT(opstream_publisher_unsubscribe(publisher, 1, &acl_error), OPSTREAM_E_STATE);
    CHECK_EQ_INT(opstream_publisher_link_state(publisher), OPSTREAM_LINK_DOWN);
    opstream_publisher_close(publisher);
    opstream_publisher_close(NULL);
    opstream_publisher_close(open_publisher()); /* one after the other is fine */
    return 0;
}

static int test_hosted_model(void) {
    enum { TIMES = 40, OPERATORS = 74 };
    char text[256];
    int acl_error = 0;
    opstream_model *model;
    setenv("OPSTREAM_SIM_SPEED", "0", 1);
    CHECK_EQ_INT(opstream_model_open(app_library_path(), "resnet50", 0, text, sizeof text, &acl_error, &model), 0);
    opstream_publisher *publisher = open_publisher();
    opstream_view *view = tally_open(opstream_publisher_segment(publisher));
    subscribe(publisher, opstream_model_id(model), 0, "resnet50");
    CHECK_EQ_U64(tally_counters(view, false).models_subscribed, 1);
    for (int i = 0; i < TIMES; i++) {
        CHECK_EQ_INT(opstream_model_execute(model, &acl_error), 0);
    }
    unsubscribe(publisher, opstream_model_id(model));

    struct opstream_counters counters = tally_counters(view, false);
    CHECK_EQ_U64(counters.records_read, TIMES * (OPERATORS + 1));
    CHECK_EQ_U64(counters.records_recorded, counters.records_read);
    CHECK_EQ_U64(counters.models_subscribed, 0);
    struct view_model counted;
    uint32_t row = tally_row(view, 0, "resnet50", &counted);
    CHECK_EQ_U64(tally_sum(counted.executions), TIMES);
    CHECK_EQ_U64(tally_operators(view, row, TIMES, NULL), OPERATORS);

    opstream_exposition *exposition;
    const char *bytes;
    size_t length;
    uint64_t now = clock_monotonic_ns();
    struct opstream_exposition_options options = {.operator_bounds = 0x1ff, .model_bounds = 0x1ff, .label_bytes_max = 128};
    CHECK_EQ_INT(opstream_exposition_new(&exposition), 0);
    CHECK_EQ_INT(opstream_exposition_add(exposition, view, "test", "", now, now), 0);
    CHECK_EQ_INT(opstream_exposition_text(exposition, &options, &bytes, &length), 0);
    CHECK(memmem(bytes, length, "model=\"resnet50\"", 16));
    opstream_exposition_free(exposition);

    opstream_view_free(view);
    opstream_publisher_close(publisher);
    opstream_model_close(model);
    return 0;
}

static int test_exact_sums(void) {
    app_start();
    uint32_t first = app_load(0), second = app_load(3);
    opstream_publisher *publisher = open_publisher();
    opstream_view *view = tally_open(opstream_publisher_segment(publisher));
    for (unsigned cycle = 1; cycle <= 4; cycle++) {
        subscribe(publisher, first, 0, "first");
        subscribe(publisher, second, 3, "second");
        app_execute(0, first, 1000);
        app_execute(3, second, 500);
        unsubscribe(publisher, first);
        subscribe(publisher, first, 0, "first"); /* the other device stays on meanwhile */
        app_execute(0, first, 1000);
        unsubscribe(publisher, second);
        unsubscribe(publisher, first);
        tally_app_model(view, 0, "first", cycle * 2000);
        tally_app_model(view, 3, "second", cycle * 500);
    }
    opstream_view_free(view);
    opstream_publisher_close(publisher);
    return 0;
}

static int test_refused_once(void) {
    int acl_error = 0;
    setenv("OPSTREAM_SIM_FAULTS", "subscribe=200007:1", 1);
    app_start();
    uint32_t model = app_load(0);
    opstream_publisher *publisher = open_publisher();
    opstream_view *view = tally_open(opstream_publisher_segment(publisher));
    CHECK_EQ_INT(opstream_publisher_subscribe(publisher, model, 0, "model", &acl_error), OPSTREAM_E_VENDOR);
    CHECK_EQ_INT(acl_error, 200007);
    CHECK_EQ_U64(tally_counters(view, false).models_failed, 1);
    struct opstream_subscribe_error errors[OPSTREAM_SUBSCRIBE_ERRORS_MAX];
    size_t count;
    CHECK_EQ_INT(opstream_view_subscribe_errors(view, errors, &count), 0);
    CHECK_EQ_U64(count, 1);
    CHECK_EQ_INT(errors[0].acl_error, 200007);
    CHECK_EQ_U64(errors[0].count, 1);

    subscribe(publisher, model, 0, "model");
    app_execute(0, model, 10);
    unsubscribe(publisher, model);
    tally_app_model(view, 0, "model", 10);
    opstream_view_free(view);
    opstream_publisher_close(publisher);
    return 0;
}

/* The number of the vendor's write end: the only pipe that is far up. */
static int write_end(void) {
    for (int fd = 64; fd < 65536; fd++) {
        struct stat status;
        if (fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode)) {
            return fd;
        }
    }
    CHECK_FAIL("no pipe");
}

static int open_file(void) {
    char path[] = "/tmp/opstream-publisher-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    unlink(path);
    return file;
}

static void check_untouched(int file) {
    struct stat status;
    CHECK(fstat(file, &status) == 0);
    CHECK_EQ_INT(status.st_size, 0);
}

/* The application puts a file of its own where the write end was. */
static int test_stolen_write_end(void) {
    app_start();
    uint32_t model = app_load(0);
    opstream_publisher *publisher = open_publisher();
    opstream_view *view = tally_open(opstream_publisher_segment(publisher));
    subscribe(publisher, model, 0, "model");
    app_execute(0, model, 10);
    unsubscribe(publisher, model);
    subscribe(publisher, model, 0, "model");
    int number = write_end();
    CHECK(dup2(open_file(), number) == number);
    unsubscribe(publisher, model);
    check_untouched(number);
    subscribe(publisher, model, 0, "model");
    app_execute(0, model, 7);
    unsubscribe(publisher, model);
    check_untouched(number);
    tally_app_model(view, 0, "model", 17);
    opstream_view_free(view);
    opstream_publisher_close(publisher);
    return 0;
}

/* The application closes everything that it didn't open, and goes on. Nothing more is counted, and nothing of its own is harmed. */
static int test_closed_descriptors(void) {
    app_start();
    uint32_t model = app_load(0);
    opstream_publisher *publisher = open_publisher();
    subscribe(publisher, model, 0, "model");
    app_execute(0, model, 10);
    for (int fd = 3; fd < 65536; fd++) {
        syscall(SYS_close, fd); /* it races with their users, and is meant to: ThreadSanitizer needn't see it */
    }
    int file = open_file(), acl_error = 0;
    for (int i = 0; i < 100; i++) {
        CHECK(dup(file) >= 0);
    }
    app_execute(0, model, 10);
    opstream_publisher_unsubscribe(publisher, model, &acl_error);
    CHECK_EQ_INT(acl_error, 0);
    CHECK_EQ_INT(opstream_publisher_subscribe(publisher, model, 0, "model", &acl_error), OPSTREAM_E_SYSTEM);
    check_untouched(file);
    opstream_publisher_close(publisher);
    check_untouched(file);
    return 0;
}

/* ---- A daemon -------------------------------------------------------------------------------------------------------------------------- */

static struct opstream_message hear(int daemon) {
    uint8_t bytes[OPSTREAM_MESSAGE_BYTES];
    struct opstream_message message;
    CHECK_EQ_INT(recv(daemon, bytes, sizeof bytes, 0), OPSTREAM_MESSAGE_BYTES);
    CHECK_EQ_INT(opstream_message_parse(bytes, sizeof bytes, &message), 0);
    return message;
}

static void say(int daemon, enum opstream_message_type type) {
    struct opstream_message message = {.version = OPSTREAM_PROTOCOL_VERSION, .type = (uint16_t)type};
    uint8_t bytes[OPSTREAM_MESSAGE_BYTES];
    CHECK_EQ_INT(opstream_message_encode(&message, bytes), 0);
    CHECK(send(daemon, bytes, sizeof bytes, MSG_NOSIGNAL) == sizeof bytes);
}

/* From the first hello to the goodbye, while models come and go. */
static int test_daemon(void) {
    char folder[] = "/tmp/opstream-publisher-XXXXXX";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK(mkdtemp(folder));
    snprintf(address.sun_path, sizeof address.sun_path, "%s/agent.sock", folder);
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 4) == 0);

    struct opstream_publisher_config config = plain;
    config.kind = OPSTREAM_KIND_HOSTED;
    config.hosted_name = "canary";
    config.socket_path = address.sun_path;
    config.library_path = app_library_path();
    opstream_publisher *publisher;
    app_start();
    uint32_t model = app_load(0);
    CHECK_EQ_INT(opstream_publisher_open(&config, &publisher), 0);
    int daemon = accept(listener, NULL, NULL);
    struct opstream_message hello = hear(daemon);
    CHECK_EQ_INT(hello.type, OPSTREAM_MESSAGE_HELLO);
    CHECK_EQ_STR(hello.hosted_name, "canary");
    CHECK_EQ_INT(opstream_publisher_link_state(publisher), OPSTREAM_LINK_DOWN);
    say(daemon, OPSTREAM_MESSAGE_WELCOME);
    while (opstream_publisher_link_state(publisher) != OPSTREAM_LINK_UP) {
        sched_yield();
    }

    /* Another daemon takes over: it is greeted with the same segment. */
    subscribe(publisher, model, 0, "model");
    close(daemon);
    daemon = accept(listener, NULL, NULL);
    struct opstream_message again = hear(daemon);
    CHECK_EQ_INT(again.type, OPSTREAM_MESSAGE_HELLO);
    CHECK(memcmp(again.uuid, hello.uuid, sizeof hello.uuid) == 0);

    struct pollfd stop = {.fd = opstream_publisher_stop_fd(publisher), .events = POLLIN};
    CHECK_EQ_INT(poll(&stop, 1, 0), 0);
    say(daemon, OPSTREAM_MESSAGE_STOP);
    CHECK_EQ_INT(poll(&stop, 1, -1), 1);
    unsubscribe(publisher, model);
    CHECK_EQ_INT(poll(&stop, 1, 0), 1); /* and stays so */
    opstream_publisher_close(publisher);
    CHECK_EQ_INT(hear(daemon).type, OPSTREAM_MESSAGE_BYE);
    CHECK(unlink(address.sun_path) == 0 && rmdir(folder) == 0);
    return 0;
}

/* ---- Ends ------------------------------------------------------------------------------------------------------------------------------ */

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
    load(2000);
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
    load(2000);
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
        CHECK_EQ_INT(opstream_publisher_subscribe(publisher, model, 0, "model", &acl_error), OPSTREAM_E_STATE);
        CHECK_EQ_INT(opstream_publisher_unsubscribe(publisher, model, &acl_error), OPSTREAM_E_STATE);
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
        opstream_publisher_close(open_publisher());
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
    load(2000);
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
    CHECK_EQ_INT(run(test_configuration), 0);
    CHECK_EQ_INT(run(test_hosted_model), 0);
    CHECK_EQ_INT(run(test_exact_sums), 0);
    CHECK_EQ_INT(run(test_refused_once), 0);
    CHECK_EQ_INT(run(test_stolen_write_end), 0);
    CHECK_EQ_INT(run(test_closed_descriptors), 0);
    CHECK_EQ_INT(run(test_daemon), 0);
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
