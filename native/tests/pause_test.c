/* A vendor whose getters are so slow that the reader can't follow: the publisher takes its models off before the pipe stalls the
 * application for long, brings them back, and of what the vendor made while they were on nothing is lost. */
#include <sched.h>

#include "publishing.h"
#include "rig.h"

#define UNDER_WAY 30000u /* more than the pipe and the reader hold together, but soon read */

static opstream_view *view;
static uint32_t model;

/* Executes until so many models are paused; no more records on their way than that. */
static void execute_until_paused(uint64_t paused) {
    for (;;) {
        struct opstream_counters counters = tally_counters(view, false);
        if (counters.models_paused == paused) {
            CHECK_EQ_U64(counters.models_subscribed, 1 - paused);
            return;
        }
        if (paused == 0 || rig_journal("records_made") < counters.records_read + UNDER_WAY) {
            app_execute(0, model, 10);
        } else {
            sched_yield();
        }
    }
}

static bool time_runs(void) {
    struct view_model seen;
    tally_row(view, 0, "model", &seen);
    return seen.subscribed & SUBSCRIBED_RUNNING;
}

static void pause_and_resume(void) {
    app_start();
    model = app_load(0);
    opstream_publisher *publisher = open_publisher();
    view = tally_open(opstream_publisher_segment(publisher));
    subscribe(publisher, model, 0, "model");
    execute_until_paused(1);
    CHECK(!time_runs());
    execute_until_paused(0);
    CHECK(time_runs());
    uint64_t made = rig_journal("records_made");
    app_execute(0, model, 10);
    CHECK(rig_journal("records_made") > made);
    while (opstream_publisher_unsubscribe(publisher, model, OPSTREAM_WAIT_FOREVER, &(int){0}) == OPSTREAM_E_BUSY) {
    }
    made = rig_journal("records_made");
    while (tally_counters(view, false).records_read < made) {
        sched_yield();
    }
    struct opstream_counters counters = tally_counters(view, false);
    CHECK_EQ_U64(counters.records_read, made);
    CHECK_EQ_U64(counters.records_recorded, made);
    CHECK_EQ_U64(counters.models_paused + counters.models_subscribed + counters.models_failed, 0);
    CHECK_EQ_U64(rig_journal("strings_read"), rig_journal("strings_made"));
    struct view_model counted;
    tally_row(view, 0, "model", &counted);
    CHECK_EQ_U64(tally_sum(counted.executions), rig_journal("keypoints_made"));
    opstream_view_free(view);
    opstream_publisher_close(publisher);
}

int main(void) {
    rig_case(pause_and_resume, "getter-delay=1us");
    return 0;
}
