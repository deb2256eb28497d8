/* The ways a subscribed process can end. */
#include "prof_case.h"

#include <pthread.h>

static uint8_t kept[RECORD];
static uint32_t model;
static struct stream stream;

static void begin(void) {
    CHECK(aclInit(NULL) == 0);
    model = load_model(0, 3);
    stream = open_stream();
    CHECK(subscribe(model, stream) == 0);
}

static void decode_kept(void) {
    char name[64] = {0};
    CHECK(aclprofGetOpName(kept, RECORD, 0, name, sizeof name) == 0 && strcmp(name, "layer/0") == 0);
}

static void subscribed(void) {
    begin();
    execute(model);
}

/* This handler is older than the first record's: when it runs, the table is gone. */
static void decode_in_old_handler(void) {
    atexit(decode_kept);
    begin();
    execute(model);
    read_bytes(stream.read_fd, kept, sizeof kept);
}

static void decode_in_new_handler(void) {
    begin();
    execute(model);
    read_bytes(stream.read_fd, kept, sizeof kept);
    atexit(decode_kept);
}

static void *decode_for_ever(void *unused) {
    char name[64];
    for (;;) {
        aclprofGetOpName(kept, RECORD, 0, name, sizeof name);
    }
    return unused;
}

static void wait_for_ever(void) {
    for (;;) {
        pause();
    }
}

/* main's return finds another thread in a getter. */
static void decode_during_exit(void) {
    atexit(wait_for_ever);
    begin();
    execute(model);
    read_bytes(stream.read_fd, kept, sizeof kept);
    pthread_t reader;
    CHECK(pthread_create(&reader, NULL, decode_for_ever, NULL) == 0);
}

static void unsubscribe(void) {
    CHECK(aclprofModelUnSubscribe(model) == 0);
}

static void unsubscribe_in_new_handler(void) {
    begin();
    execute(model);
    atexit(unsubscribe);
}

static void *execute_for_ever(void *unused) {
    for (;;) {
        execute(model);
    }
    return unused;
}

/* The parent reads only after it has seen that exit hangs. */
static void exit_without_reader(void) {
    begin();
    *stream.write_fd = CASE_WRITE_FD;
    for (int i = 0; i < 2000; i++) {
        execute(model);
    }
    CHECK(write(CASE_READY_FD, "x", 1) == 1);
}

static void exit_with_blocked_producer(void) {
    begin();
    *stream.write_fd = CASE_WRITE_FD;
    pthread_t producer;
    CHECK(pthread_create(&producer, NULL, execute_for_ever, NULL) == 0);
    journal_await("producer_waits", 1);
    CHECK(write(CASE_READY_FD, "x", 1) == 1);
}

static int end_child(void (*end)(void)) {
    pid_t pid = fork();
    if (pid == 0) {
        end();
        _exit(CASE_FAILED);
    }
    CHECK(pid > 0);
    return status_of(pid);
}

static void by_exit(void) {
    exit(0);
}

static void by_quick_exit(void) {
    _exit(0);
}

static void by_exec(void) {
    execl("/proc/self/exe", "case", "nothing", (char *)NULL);
}

static void nothing(void) {}

static void child_of_subscribed(void) {
    begin();
    execute(model);
    int status = end_child(by_exit);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(end_child(by_quick_exit) == 0);
    CHECK(end_child(by_exec) == 0);
    CHECK(aclprofModelUnSubscribe(model) == 0);
    CHECK(end_child(by_exit) == 0);
}

static void publish_and_be_killed(void) {
    begin();
    execute(model);
    CHECK(aclprofModelUnSubscribe(model) == 0);
    raise(SIGKILL);
}

static void journal_survives_a_kill(void) {
    int status = end_child(publish_and_be_killed);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(journal_value("records_made") == 4 && journal_value("records_written") == 4 && journal_value("keypoints_made") == 1);
}

static const struct prof_case cases[] = {
    {.name = "nothing", .run = nothing},
    {.name = "subscribed", .run = subscribed},
    {.name = "decode_in_old_handler", .run = decode_in_old_handler, .end = ENDS_CRASHED},
    {.name = "decode_in_new_handler", .run = decode_in_new_handler},
    {.name = "decode_during_exit", .run = decode_during_exit, .end = ENDS_CRASHED},
    {.name = "unsubscribe_in_new_handler", .run = unsubscribe_in_new_handler},
    {.name = "exit_without_reader", .run = exit_without_reader, .end = ENDS_WHEN_READ},
    {.name = "exit_with_blocked_producer", .run = exit_with_blocked_producer, .end = ENDS_WHEN_READ},
    {.name = "child_of_subscribed", .run = child_of_subscribed},
    {.name = "journal_survives_a_kill", .run = journal_survives_a_kill},
};

RUN_CASES(cases)
