/* Subscribing and unsubscribing: codes, descriptors, the full pipe, the closed pipe, threads and signals. */
#include "prof_case.h"

#include <dirent.h>
#include <pthread.h>

#define QUEUE_RECORDS 200000u

static bool is_open(int fd) {
    return fcntl(fd, F_GETFD) >= 0;
}

/* Whether all write ends of the stream are closed; nothing may be left to read. */
static bool at_end(struct stream stream) {
    struct pollfd ended = {stream.read_fd, 0, 0};
    CHECK(poll(&ended, 1, 0) >= 0);
    return ended.revents & POLLHUP;
}

static void discard(struct stream stream, size_t records) {
    uint8_t record[RECORD];
    for (size_t i = 0; i < records; i++) {
        read_bytes(stream.read_fd, record, sizeof record);
    }
}

static void codes(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t model = load_model(0, 1);
    struct stream stream = open_stream();
    CHECK(aclprofModelUnSubscribe(model) == 100011);
    CHECK(aclprofModelSubscribe(model, NULL) == 100000);
    CHECK(aclprofCreateSubscribeConfig(1, ACL_AICORE_NONE, NULL) == NULL);
    CHECK(aclprofDestroySubscribeConfig(NULL) == 100000);
    aclprofSubscribeConfig *nothing = aclprofCreateSubscribeConfig(0, ACL_AICORE_NONE, stream.write_fd);
    CHECK(aclprofModelSubscribe(model, nothing) == 100000);
    CHECK(aclprofDestroySubscribeConfig(nothing) == 0);
    CHECK(subscribe(model + 1000, stream) == 100011);
    CHECK(subscribe(model, stream) == 0);
    CHECK(subscribe(model, stream) == 148046);
    CHECK(aclprofModelUnSubscribe(model + 1000) == 100011);
    CHECK(aclprofModelUnSubscribe(model) == 0);
    CHECK(aclprofModelUnSubscribe(model) == 100011);
    execute(model);
    CHECK(journal_value("records_made") == 0 && journal_value("strings_made") == 0);
}

static void only_subscribed_models(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t model = load_model(0, 1), other = load_model(0, 5);
    struct stream stream = open_stream();
    CHECK(subscribe(model, stream) == 0);
    execute(other);
    execute(model);
    CHECK(aclprofModelUnSubscribe(model) == 0);
    uint8_t records[10 * RECORD];
    CHECK(read_all(stream.read_fd, records, sizeof records) == 2 * RECORD);
    CHECK(aclprofGetModelId(records, RECORD, 0) == model);
}

/* Whatever was made is in the pipe when unsubscribing returns. */
static void delivered_before_return(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t model = load_model(0, 500);
    for (int i = 0; i < 20; i++) {
        struct stream stream = open_stream();
        uint8_t records[502 * RECORD];
        CHECK(subscribe(model, stream) == 0);
        execute(model);
        CHECK(aclprofModelUnSubscribe(model) == 0);
        CHECK(*stream.write_fd == -1);
        CHECK(fcntl(stream.read_fd, F_SETFL, O_NONBLOCK) == 0);
        CHECK(read_all(stream.read_fd, records, sizeof records) == 501 * RECORD);
        close(stream.read_fd);
    }
}

static void invalid_fd(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t model = load_model(0, 3);
    struct stream stream = open_stream();
    *stream.write_fd = 5555;
    CHECK(subscribe(model, stream) == 0);
    execute(model);
    CHECK(aclprofModelUnSubscribe(model) == 0);
    CHECK(journal_value("records_lost") == 4 && journal_value("records_written") == 0);
}

static void fd_read_on_every_write(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t model = load_model(0, 3);
    struct stream stream = open_stream(), stranger = open_stream();
    CHECK(subscribe(model, stream) == 0);
    execute(model);
    discard(stream, 4);
    int first = *stream.write_fd;
    __atomic_store_n(stream.write_fd, *stranger.write_fd, __ATOMIC_RELAXED);
    execute(model);
    discard(stranger, 4);
    CHECK(aclprofModelUnSubscribe(model) == 0);
    CHECK(*stream.write_fd == -1 && is_open(first) && !is_open(*stranger.write_fd));
}

static void models_share_an_fd(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t a = load_model(0, 1), b = load_model(0, 1);
    struct stream stream = open_stream(), unused = open_stream();
    CHECK(subscribe(a, stream) == 0 && subscribe(b, unused) == 0);
    CHECK(aclprofModelUnSubscribe(a) == 0);
    execute(a);
    execute(b);
    discard(stream, 2);
    CHECK(is_open(*stream.write_fd));
    int fd = *stream.write_fd;
    CHECK(aclprofModelUnSubscribe(b) == 0);
    CHECK(*stream.write_fd == -1 && !is_open(fd) && at_end(stream));
    CHECK(is_open(*unused.write_fd));
}

static void two_devices(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t a = load_model(0, 1), b = load_model(1, 1);
    struct stream to_a = open_stream(), to_b = open_stream();
    CHECK(subscribe(a, to_a) == 0 && subscribe(b, to_b) == 0);
    execute(a);
    execute(b);
    CHECK(aclprofModelUnSubscribe(a) == 0);
    discard(to_a, 2);
    discard(to_b, 2);
    execute(a);
    CHECK(is_open(*to_a.write_fd) && !at_end(to_a));
    CHECK(aclprofModelUnSubscribe(b) == 0);
    CHECK(*to_a.write_fd == -1 && *to_b.write_fd == -1 && at_end(to_a) && at_end(to_b));
    CHECK(journal_value("records_made") == 4);
}

static void on_again_while_another_stayed(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t a = load_model(0, 1), b = load_model(1, 1);
    struct stream to_a = open_stream(), to_b = open_stream(), again = open_stream();
    CHECK(subscribe(a, to_a) == 0 && subscribe(b, to_b) == 0);
    CHECK(aclprofModelUnSubscribe(a) == 0);
    CHECK(subscribe(a, again) == 0);
    execute(a);
    discard(again, 2);
    CHECK(aclprofModelUnSubscribe(a) == 100011);
    CHECK(aclprofModelUnSubscribe(b) == 0);
    CHECK(aclprofModelUnSubscribe(a) == 100011);
    CHECK(is_open(*to_a.write_fd) && is_open(*to_b.write_fd) && is_open(*again.write_fd));
}

/* All off and on again together is how it goes well. */
static void cycles_of_two_devices(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t a = load_model(0, 4), b = load_model(1, 4);
    for (int i = 0; i < 30; i++) {
        struct stream to_a = open_stream(), to_b = open_stream();
        uint8_t records[8 * RECORD];
        CHECK(subscribe(a, to_a) == 0 && subscribe(b, to_b) == 0);
        execute(a);
        execute(b);
        CHECK(aclprofModelUnSubscribe(i % 2 ? a : b) == 0 && aclprofModelUnSubscribe(i % 2 ? b : a) == 0);
        CHECK(read_all(to_a.read_fd, records, sizeof records) == 5 * RECORD);
        CHECK(read_all(to_b.read_fd, records, sizeof records) == 5 * RECORD);
        close(to_a.read_fd);
        close(to_b.read_fd);
    }
}

static void another_configuration(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t a = load_model(0, 1), b = load_model(0, 1), c = load_model(1, 1);
    struct stream stream = open_stream();
    aclprofSubscribeConfig *other = aclprofCreateSubscribeConfig(2, ACL_AICORE_NONE, stream.write_fd);
    CHECK(subscribe(a, stream) == 0);
    CHECK(aclprofModelSubscribe(b, other) == 100010);
    CHECK(aclprofModelUnSubscribe(b) == 100011);
    CHECK(aclprofModelSubscribe(c, other) == 100010);
    CHECK(aclprofModelSubscribe(c, other) == 148046);
    execute(c);
    CHECK(aclprofModelUnSubscribe(a) == 0);
    CHECK(is_open(*stream.write_fd) && journal_value("records_made") == 0);
    CHECK(aclprofModelUnSubscribe(c) == 0);
    CHECK(*stream.write_fd == -1);
    CHECK(aclprofModelSubscribe(c, other) == 0 && aclprofModelUnSubscribe(c) == 0);
    CHECK(aclprofDestroySubscribeConfig(other) == 0);
}

static void unloaded_before_unsubscribed(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t a = load_model(0, 1);
    struct stream stream = open_stream();
    CHECK(subscribe(a, stream) == 0);
    CHECK(aclmdlUnload(a) == 0);
    CHECK(aclprofModelUnSubscribe(a) == 100011);
    CHECK(is_open(*stream.write_fd));
    CHECK(aclprofInit("/tmp", 4) == 148047);
}

static void *execute_twice(void *model) {
    execute(*(uint32_t *)model);
    execute(*(uint32_t *)model);
    return NULL;
}

static _Atomic pid_t unsubscriber_id;

static void *unsubscribe(void *model) {
    unsubscriber_id = gettid();
    CHECK(aclprofModelUnSubscribe(*(uint32_t *)model) == 0);
    CHECK(write(CASE_READY_FD, "x", 1) == 1);
    return NULL;
}

static void *subscribe_to_nowhere(void *model) {
    static int nowhere = -1;
    CHECK(subscribe(*(uint32_t *)model, (struct stream){.write_fd = &nowhere}) == 0);
    CHECK(write(CASE_READY_FD, "x", 1) == 1);
    return NULL;
}

/* Waits until the thread that unsubscribes sleeps, which it does nowhere but in there. */
static void await_sleep_of_unsubscriber(void) {
    for (char state = 0; state != 'S';) {
        char path[64], line[512] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", unsubscriber_id);
        FILE *stat = fopen(path, "r");
        if (stat && fgets(line, sizeof line, stat) && strrchr(line, ')')) {
            state = strrchr(line, ')')[2];
        }
        if (stat) {
            fclose(stat);
        }
    }
}

/* Nobody reads: the queue fills, the execution blocks, unsubscribing hangs and so does the next subscribe. Then somebody does. */
static void nobody_reads(struct stream stream) {
    int done[2];
    CHECK(pipe2(done, O_CLOEXEC | O_NONBLOCK) == 0 && dup2(done[1], CASE_READY_FD) >= 0);
    uint32_t model = load_model(0, 150000), other = load_model(1, 1);
    CHECK(subscribe(model, stream) == 0);
    pthread_t producer, unsubscriber, subscriber;
    CHECK(pthread_create(&producer, NULL, execute_twice, &model) == 0);
    journal_await("producer_waits", 1);
    uint64_t written = journal_value("records_written");
    uint64_t queued = journal_value("records_made") - written;
    CHECK(queued > QUEUE_RECORDS / 100 * 95 && queued <= QUEUE_RECORDS + 1);
    CHECK(pthread_create(&unsubscriber, NULL, unsubscribe, &model) == 0);
    await_sleep_of_unsubscriber();
    CHECK(pthread_create(&subscriber, NULL, subscribe_to_nowhere, &other) == 0);
    struct pollfd ended = {done[0], POLLIN, 0};
    CHECK(poll(&ended, 1, 300) == 0);

    CHECK(fcntl(stream.read_fd, F_SETFL, O_NONBLOCK) == 0);
    size_t bytes = 0;
    for (int waiting = 2; waiting > 0;) {
        uint8_t records[65536];
        struct pollfd either[2] = {{stream.read_fd, POLLIN, 0}, {done[0], POLLIN, 0}};
        CHECK(poll(either, 2, PATIENCE_MS) > 0);
        if (either[1].revents) {
            waiting -= (int)read(done[0], records, 2);
        }
        ssize_t got = read(stream.read_fd, records, sizeof records);
        bytes += got > 0 ? (size_t)got : 0;
    }
    pthread_join(producer, NULL);
    pthread_join(unsubscriber, NULL);
    pthread_join(subscriber, NULL);
    uint8_t rest[65536];
    for (ssize_t got; (got = read(stream.read_fd, rest, sizeof rest)) > 0;) {
        bytes += (size_t)got;
    }
    CHECK(bytes == journal_value("records_made") * RECORD && journal_value("records_lost") == 0);
    CHECK(bytes > QUEUE_RECORDS * RECORD && bytes % RECORD == 0);
    CHECK(journal_value("writer_blocked_ns") > 0);
    CHECK(aclprofModelUnSubscribe(other) == 0);
}

static void full_pipe(void) {
    CHECK(aclInit(NULL) == 0);
    nobody_reads(open_stream());
}

static void full_pipe_nonblocking(void) {
    CHECK(aclInit(NULL) == 0);
    struct stream stream = open_stream();
    CHECK(fcntl(*stream.write_fd, F_SETFL, O_NONBLOCK) == 0);
    nobody_reads(stream);
}

static uint32_t execute_without_reader(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t model = load_model(0, 3);
    struct stream stream = open_stream();
    CHECK(subscribe(model, stream) == 0);
    close(stream.read_fd);
    execute(model);
    return model;
}

static void sigpipe(void) {
    signal(SIGPIPE, SIG_DFL);
    execute_without_reader();
    journal_await("records_lost", 4);
}

static void sigpipe_ignored(void) {
    signal(SIGPIPE, SIG_IGN);
    CHECK(aclprofModelUnSubscribe(execute_without_reader()) == 0);
    CHECK(journal_value("records_lost") == 4);
}

/* The profiler's threads inherit the mask of whoever subscribes. */
static void sigpipe_blocked(void) {
    sigset_t all, old;
    sigfillset(&all);
    CHECK(aclInit(NULL) == 0);
    uint32_t model = load_model(0, 3);
    struct stream stream = open_stream();
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &old) == 0);
    CHECK(subscribe(model, stream) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
    close(stream.read_fd);
    execute(model);
    CHECK(aclprofModelUnSubscribe(model) == 0);
    CHECK(journal_value("records_lost") == 4);
}

static int thread_count(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks);
    for (struct dirent *task; (task = readdir(tasks));) {
        count += task->d_name[0] != '.';
    }
    closedir(tasks);
    return count;
}

static void threads_and_interrupt(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t model = load_model(0, 1);
    struct stream stream = open_stream();
    struct sigaction before, during, after;
    int threads = thread_count();
    sigaction(SIGINT, NULL, &before);
    CHECK(subscribe(model, stream) == 0);
    CHECK(thread_count() >= threads + 18);
    sigaction(SIGINT, NULL, &during);
    CHECK(aclprofModelUnSubscribe(model) == 0);
    sigaction(SIGINT, NULL, &after);
    CHECK(before.sa_handler != during.sa_handler && during.sa_handler == after.sa_handler);
}

static const struct prof_case cases[] = {
    {.name = "codes", .run = codes},
    {.name = "only_subscribed_models", .run = only_subscribed_models},
    {.name = "delivered_before_return", .run = delivered_before_return},
    {.name = "invalid_fd", .run = invalid_fd},
    {.name = "fd_read_on_every_write", .run = fd_read_on_every_write},
    {.name = "models_share_an_fd", .run = models_share_an_fd},
    {.name = "two_devices", .run = two_devices},
    {.name = "on_again_while_another_stayed", .run = on_again_while_another_stayed},
    {.name = "cycles_of_two_devices", .run = cycles_of_two_devices},
    {.name = "another_configuration", .run = another_configuration},
    {.name = "unloaded_before_unsubscribed", .run = unloaded_before_unsubscribed},
    {.name = "full_pipe", .run = full_pipe},
    {.name = "full_pipe_nonblocking", .run = full_pipe_nonblocking},
    {.name = "sigpipe", .run = sigpipe, .end = ENDS_BY_SIGPIPE},
    {.name = "sigpipe_ignored", .run = sigpipe_ignored},
    {.name = "sigpipe_blocked", .run = sigpipe_blocked},
    {.name = "threads_and_interrupt", .run = threads_and_interrupt},
};

RUN_CASES(cases)
