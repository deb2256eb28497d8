/* Models that are not subscribed, though they should be: until when, and what is said of them meanwhile. */
#include <sched.h>

#include "publishing.h"

#define API_CONFLICT 148047

static int test_refused_once(void) {
    int acl_error = 0;
    setenv("OPSTREAM_SIM_FAULTS", "subscribe=200007:1", 1);
    app_start();
    uint32_t model = app_load(0);
    opstream_publisher *publisher = open_publisher();
    opstream_view *view = tally_open(opstream_publisher_segment(publisher));
    CHECK_EQ_INT(opstream_publisher_subscribe(publisher, model, 0, "model", OPSTREAM_WAIT_FOREVER, &acl_error), OPSTREAM_E_VENDOR);
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

/* A model that is refused when all devices cycle for another one comes back by itself. */
static int test_refused_in_a_cycle(void) {
    setenv("OPSTREAM_SIM_FAULTS", "subscribe=500005:1+2", 1);
    app_start();
    uint32_t first = app_load(0), second = app_load(3);
    opstream_publisher *publisher = open_publisher();
    opstream_view *view = tally_open(opstream_publisher_segment(publisher));
    subscribe(publisher, first, 0, "first");
    subscribe(publisher, second, 3, "second");
    unsubscribe(publisher, second);
    subscribe(publisher, second, 3, "second");
    struct opstream_counters counters = tally_counters(view, false);
    CHECK_EQ_U64(counters.models_failed, 1);
    CHECK_EQ_U64(counters.models_subscribed, 1);
    while (tally_counters(view, false).models_subscribed < 2) {
        sched_yield();
    }
    app_execute(0, first, 10);
    app_execute(3, second, 20);
    unsubscribe(publisher, first);
    unsubscribe(publisher, second);
    tally_app_model(view, 0, "first", 10);
    tally_app_model(view, 3, "second", 20);
    opstream_view_free(view);
    opstream_publisher_close(publisher);
    return 0;
}

/* While somebody else has the profiler a model says `paused`, then it comes back by itself. */
static int test_refused_for_another(void) {
    int acl_error = 0;
    setenv("OPSTREAM_SIM_FAULTS", "subscribe=148047:1", 1);
    app_start();
    uint32_t model = app_load(0);
    opstream_publisher *publisher = open_publisher();
    opstream_view *view = tally_open(opstream_publisher_segment(publisher));
    CHECK_EQ_INT(opstream_publisher_subscribe(publisher, model, 0, "model", OPSTREAM_WAIT_FOREVER, &acl_error), OPSTREAM_E_VENDOR);
    CHECK_EQ_U64(tally_counters(view, false).models_paused, 1);
    while (tally_counters(view, false).models_subscribed < 1) {
        sched_yield();
    }
    CHECK_EQ_INT(opstream_publisher_subscribe(publisher, model, 0, "model", OPSTREAM_WAIT_FOREVER, &acl_error), OPSTREAM_E_STATE);
    app_execute(0, model, 10);
    unsubscribe(publisher, model);
    tally_app_model(view, 0, "model", 10);
    opstream_view_free(view);
    opstream_publisher_close(publisher);
    return 0;
}

/* A collection of the application's own: what its beginning answers. */
static int profile(void) {
    union {
        void *address;
        int (*init)(const char *path, size_t length);
        int (*finalize)(void);
    } begin = {vendor_loaded_function("aclprofInit")}, end = {vendor_loaded_function("aclprofFinalize")};
    CHECK(begin.address && end.address);
    int answer = begin.init("/tmp", 4);
    CHECK(answer != 0 || end.finalize() == 0);
    return answer;
}

/* While it is suspended nothing is subscribed, whatever is loaded, and the application has the profiler. */
static int test_suspended(void) {
    app_start();
    uint32_t first = app_load(0), second = app_load(3);
    opstream_publisher *publisher = open_publisher();
    opstream_view *view = tally_open(opstream_publisher_segment(publisher));
    subscribe(publisher, first, 0, "first");
    app_execute(0, first, 10);
    CHECK_EQ_INT(profile(), API_CONFLICT);
    CHECK_EQ_INT(opstream_publisher_restore(publisher), OPSTREAM_E_STATE);
    CHECK_EQ_INT(opstream_publisher_suspend(publisher, OPSTREAM_WAIT_FOREVER), 0);
    CHECK_EQ_INT(opstream_publisher_suspend(publisher, OPSTREAM_WAIT_FOREVER), 0);
    subscribe(publisher, second, 3, "second");
    CHECK_EQ_U64(tally_counters(view, false).models_paused, 2);
    app_execute(0, first, 5);
    CHECK_EQ_INT(profile(), 0);
    CHECK_EQ_INT(opstream_publisher_restore(publisher), 0);
    CHECK_EQ_U64(tally_counters(view, false).models_paused, 2);
    CHECK_EQ_INT(opstream_publisher_restore(publisher), 0);
    while (tally_counters(view, false).models_subscribed < 2) {
        sched_yield();
    }
    app_execute(0, first, 1);
    app_execute(3, second, 2);
    CHECK_EQ_INT(opstream_publisher_unsubscribe_all(publisher, OPSTREAM_WAIT_FOREVER), 0);
    tally_app_model(view, 0, "first", 11);
    tally_app_model(view, 3, "second", 2);
    opstream_view_free(view);
    opstream_publisher_close(publisher);
    return 0;
}

int main(void) {
    CHECK_EQ_INT(run(test_refused_once), 0);
    CHECK_EQ_INT(run(test_refused_in_a_cycle), 0);
    CHECK_EQ_INT(run(test_refused_for_another), 0);
    CHECK_EQ_INT(run(test_suspended), 0);
    return 0;
}
