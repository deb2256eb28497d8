#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "device_pipe.h"
#include "publishing.h"

/* ---- Counting ------------------------------------------------------------------------------------------------------------------------ */

static int test_configuration(void) {
    opstream_publisher *publisher, *second;
    struct opstream_publisher_config other = plain;
    int acl_error = 0;
    other.library_path = "/nonexistent";
    CHECK_EQ_INT(opstream_publisher_open(&other, &publisher), OPSTREAM_OK);
    CHECK_EQ_INT(opstream_publisher_subscribe(publisher, 1, 0, "model", OPSTREAM_WAIT_FOREVER, &acl_error), OPSTREAM_E_LIBRARY);
    opstream_publisher_close(publisher);

    char longer[600];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    struct opstream_publisher_config configs[8];
    for (size_t i = 0; i < 8; i++) {
        configs[i] = plain;
    }
    configs[0].kind = 3;
    configs[1].series_capacity = 63;
    configs[2].series_capacity = 24577;
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
    CHECK_EQ_INT(opstream_publisher_subscribe(publisher, 1, 64, "model", OPSTREAM_WAIT_FOREVER, &acl_error), OPSTREAM_E_INVALID);
    CHECK_EQ_INT(opstream_publisher_subscribe(publisher, 1, 0, longer, OPSTREAM_WAIT_FOREVER, &acl_error), OPSTREAM_E_INVALID);
    CHECK_EQ_INT(opstream_publisher_unsubscribe(publisher, 1, OPSTREAM_WAIT_FOREVER, &acl_error), OPSTREAM_E_STATE);
    CHECK_EQ_INT(opstream_publisher_link_state(publisher), OPSTREAM_LINK_DOWN);
    opstream_publisher_close(publisher);
    opstream_publisher_close(NULL);
    opstream_publisher_close(open_publisher()); /* one after the other is fine */
    return 0;
}

static int test_hosted_model(void) {
    enum { TIMES = 10, OPERATORS = 74 };
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
        app_execute(0, first, 100);
        app_execute(3, second, 50);
        unsubscribe(publisher, first);
        subscribe(publisher, first, 0, "first"); /* the other device stays on meanwhile */
        app_execute(0, first, 100);
        unsubscribe(publisher, second);
        unsubscribe(publisher, first);
        tally_app_model(view, 0, "first", cycle * 200);
        tally_app_model(view, 3, "second", cycle * 50);
    }
    opstream_view_free(view);
    opstream_publisher_close(publisher);
    return 0;
}

/* The vendor's threads would be more than the user may have: it isn't even asked. */
static int test_no_room(void) {
    int acl_error = 0;
    struct rlimit limit = {.rlim_cur = 60, .rlim_max = 60};
    app_start();
    uint32_t model = app_load(0);
    CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0);
    CHECK(geteuid() != 0 || setuid(65534) == 0);
    opstream_publisher *publisher = open_publisher();
    opstream_view *view = tally_open(opstream_publisher_segment(publisher));
    CHECK_EQ_INT(opstream_publisher_subscribe(publisher, model, 0, "model", OPSTREAM_WAIT_FOREVER, &acl_error), OPSTREAM_E_FULL);
    struct opstream_counters counters = tally_counters(view, false);
    CHECK_EQ_U64(counters.models_subscribed + counters.models_failed, 0);
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

/* The application closes everything that it didn't open, puts a file of its own under every number, and goes on. Nothing more is counted,
 * and once the vendor has been kept off its write end's number nothing is written into the file. */
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
    for (int fd = 64; fd < 65536 && dup2(file, fd) == fd; fd++) {
    }
    while (__atomic_load_n(device_pipe_write_end(0), __ATOMIC_ACQUIRE) != -1) {
        sched_yield();
    }
    app_execute(0, model, 10);
    CHECK_EQ_INT(opstream_publisher_segment(publisher), OPSTREAM_E_SYSTEM);
    opstream_publisher_unsubscribe(publisher, model, OPSTREAM_WAIT_FOREVER, &acl_error);
    CHECK_EQ_INT(acl_error, 0);
    CHECK_EQ_INT(opstream_publisher_subscribe(publisher, model, 0, "model", OPSTREAM_WAIT_FOREVER, &acl_error), OPSTREAM_E_SYSTEM);
    check_untouched(file);
    opstream_publisher_close(publisher);
    check_untouched(file);
    return 0;
}

/* ---- A daemon ------------------------------------------------------------------------------------------------------------------------ */

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

    unsubscribe(publisher, model);
    opstream_publisher_close(publisher);
    CHECK_EQ_INT(hear(daemon).type, OPSTREAM_MESSAGE_BYE);
    CHECK(unlink(address.sun_path) == 0 && rmdir(folder) == 0);
    return 0;
}

int main(void) {
    CHECK_EQ_INT(run(test_configuration), 0);
    CHECK_EQ_INT(run(test_hosted_model), 0);
    CHECK_EQ_INT(run(test_exact_sums), 0);
    CHECK_EQ_INT(run(test_no_room), 0);
    CHECK_EQ_INT(run(test_stolen_write_end), 0);
    CHECK_EQ_INT(run(test_closed_descriptors), 0);
    CHECK_EQ_INT(run(test_daemon), 0);
    return 0;
}
