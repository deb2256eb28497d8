/* publishing.h: a publisher for a test, and a process for each test: a publisher is its process's. */
#ifndef OPSTREAM_PUBLISHING_H
#define OPSTREAM_PUBLISHING_H

#include <sys/wait.h>

#include "tally.h"

static const struct opstream_publisher_config plain = {
    .kind = OPSTREAM_KIND_AGENT,
    .series_capacity = 256,
    .app = "test",
    .daemon_uid = UINT32_MAX,
};

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
    int acl_error = 0, status = opstream_publisher_subscribe(publisher, model_id, device, name, OPSTREAM_WAIT_FOREVER, &acl_error);
    if (status != OPSTREAM_OK) {
        CHECK_FAIL("%s: %s, %d", name, opstream_status_name(status), acl_error);
    }
}

static inline void unsubscribe(opstream_publisher *publisher, uint32_t model_id) {
    int acl_error = 0, status = opstream_publisher_unsubscribe(publisher, model_id, OPSTREAM_WAIT_FOREVER, &acl_error);
    if (status != OPSTREAM_OK) {
        CHECK_FAIL("model %u: %s, %d", model_id, opstream_status_name(status), acl_error);
    }
}

/* In a process of its own, which exits with what the test returns. Returns its exit status, or minus the signal that ended it. */
static inline int run(int (*test)(void)) {
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

#endif
