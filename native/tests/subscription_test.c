#include <dirent.h>
#include <signal.h>

#include "subscription.h"
#include "tally.h"

static struct segment_writer writer;
static struct vendor vendor;
static struct reader *reader;
static struct subscriptions *subscriptions;
static opstream_view *view;

static int descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder);
    while (readdir(folder)) {
        count++;
    }
    closedir(folder);
    return count;
}

static void add(uint32_t model_id, uint32_t device, const char *name) {
    int acl_error = 0, status = subscriptions_add(subscriptions, model_id, device, name, &acl_error);
    if (status != OPSTREAM_OK) {
        CHECK_FAIL("%s: %s, %d", name, opstream_status_name(status), acl_error);
    }
}

static void take_off(uint32_t model_id) {
    int acl_error = 0, status = subscriptions_remove(subscriptions, model_id, &acl_error);
    if (status != OPSTREAM_OK) {
        CHECK_FAIL("model %u: %s, %d", model_id, opstream_status_name(status), acl_error);
    }
}

static void check_state(uint32_t device, const char *name, enum segment_model_state state) {
    struct view_model model;
    uint32_t row = tally_row(view, device, name, &model);
    CHECK_EQ_INT(atomic_load(&writer.models[row].state), state);
}

static void on_interrupt(int number) {
    (void)number;
}

/* Two devices in all the ways in which they can go on and off. */
static void test_devices(uint32_t first, uint32_t second, uint32_t third) {
    unsigned firsts = 0, seconds = 0, thirds = 0;
    int acl_error = 0, before = 0;
    for (int cycle = 0; cycle < 5; cycle++) {
        add(first, 0, "first");
        CHECK_EQ_INT(subscriptions_add(subscriptions, first, 0, "first", &acl_error), OPSTREAM_E_STATE);
        add(second, 0, "second");
        add(third, 1, "third");
        app_execute(0, first, 3);
        app_execute(0, second, 4);
        app_execute(1, third, 5);
        firsts += 3, seconds += 4, thirds += 5;

        /* Device 1 goes off alone, and comes back: all cycle. */
        take_off(third);
        check_state(1, "third", MODEL_UNSUBSCRIBED);
        app_execute(1, third, 1); /* nobody's */
        add(third, 1, "third");
        check_state(0, "first", MODEL_SUBSCRIBED);
        app_execute(0, first, 2);
        app_execute(0, second, 2);
        app_execute(1, third, 2);
        firsts += 2, seconds += 2, thirds += 2;

        /* One of two models of a device goes, the device stays. */
        take_off(second);
        add(second, 0, "second");
        app_execute(0, second, 1);
        seconds += 1;

        subscriptions_pause(subscriptions);
        CHECK(!subscriptions_any(subscriptions));
        check_state(0, "first", MODEL_PAUSED);
        check_state(1, "third", MODEL_PAUSED);
        app_execute(0, first, 1); /* nobody's */
        take_off(second);
        add(second, 0, "second"); /* waits with the others */
        check_state(0, "second", MODEL_PAUSED);
        CHECK_EQ_INT(subscriptions_resume(subscriptions), 0);
        check_state(0, "second", MODEL_SUBSCRIBED);
        app_execute(0, first, 1);
        app_execute(0, second, 1);
        app_execute(1, third, 1);
        firsts++, seconds++, thirds++;

        subscriptions_remove_all(subscriptions);
        CHECK(!subscriptions_any(subscriptions));
        CHECK_EQ_INT(subscriptions_remove(subscriptions, first, &acl_error), OPSTREAM_E_STATE);
        check_state(0, "first", MODEL_UNSUBSCRIBED);
        tally_app_model(view, 0, "first", firsts);
        tally_app_model(view, 0, "second", seconds);
        tally_app_model(view, 1, "third", thirds);
        CHECK(cycle == 0 || descriptors() == before);
        before = descriptors();
    }
    struct opstream_counters counters = tally_counters(view, false);
    CHECK_EQ_U64(counters.records_read, (APP_OPERATORS + 1) * (uint64_t)(firsts + seconds + thirds));
    CHECK_EQ_U64(counters.records_recorded, counters.records_read);
}

/* A model that isn't loaded: counted, and nothing of it stays. */
static void test_refusal(uint32_t first) {
    int acl_error = 0, before = descriptors();
    CHECK_EQ_INT(subscriptions_add(subscriptions, 4711, 2, "stranger", &acl_error), OPSTREAM_E_VENDOR);
    CHECK_EQ_INT(acl_error, 100011);
    CHECK_EQ_INT(descriptors(), before);
    check_state(2, "stranger", MODEL_FAILED);
    CHECK_EQ_INT(subscriptions_remove(subscriptions, 4711, &acl_error), OPSTREAM_E_STATE);

    /* Another of the same device leaves the pipe alone. */
    add(first, 0, "first");
    before = descriptors();
    CHECK_EQ_INT(subscriptions_add(subscriptions, 4711, 0, "stranger", &acl_error), OPSTREAM_E_VENDOR);
    CHECK_EQ_INT(descriptors(), before);
    take_off(first);

    struct opstream_subscribe_error errors[OPSTREAM_SUBSCRIBE_ERRORS_MAX];
    size_t count;
    CHECK_EQ_INT(opstream_view_subscribe_errors(view, errors, &count), 0);
    CHECK_EQ_U64(count, 1);
    CHECK_EQ_INT(errors[0].acl_error, 100011);
    CHECK_EQ_U64(errors[0].count, 2);
}

int main(void) {
    struct vendor_library library;
    struct segment_identity identity = {.kind = OPSTREAM_KIND_AGENT};
    strcpy(identity.app, "test");
    app_start();
    uint32_t first = app_load(0), second = app_load(0), third = app_load(1);

    CHECK_EQ_INT(vendor_library_open(app_library_path(), NULL, 0, &library), 0);
    CHECK_EQ_INT(vendor_load(&library, NULL, 0, &vendor), 0);
    CHECK_EQ_INT(segment_create(&identity, 64, &writer), 0);
    CHECK_EQ_INT(reader_start(&vendor, &writer, &reader), 0);
    CHECK_EQ_INT(subscriptions_new(NULL, &vendor, &writer, reader, &subscriptions), 0);
    view = tally_open(dup(writer.fd));

    struct sigaction interrupt = {.sa_handler = on_interrupt}, after;
    CHECK(sigaction(SIGINT, &interrupt, NULL) == 0);
    test_devices(first, second, third);
    CHECK(sigaction(SIGINT, NULL, &after) == 0);
    CHECK(after.sa_handler == on_interrupt);
    test_refusal(first);

    opstream_view_free(view);
    subscriptions_free(subscriptions);
    reader_stop(reader);
    segment_free(&writer);
    _exit(0); /* exit() is publisher_test's */
}
