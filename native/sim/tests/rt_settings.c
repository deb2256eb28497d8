/* The environment: what it sets, and that aclInit refuses a malformed one. Each case in a process of its own, as it is read once. */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "acl/acl.h"
#include "expect.h"
#include "sim.h"

static const struct {
    const char *variable;
    const char *value;
    const char *complaint;
} bad[] = {
    {"OPSTREAM_SIM_SPEED", "fast",
     "OPSTREAM_SIM_SPEED is \"fast\", but must be \"unthrottled\" or a number from 0.001 to 1000000 (0 = unthrottled)"},
    {"OPSTREAM_SIM_SPEED", "-1",
     "OPSTREAM_SIM_SPEED is \"-1\", but must be \"unthrottled\" or a number from 0.001 to 1000000 (0 = unthrottled)"},
    {"OPSTREAM_SIM_SPEED", "0.0009",
     "OPSTREAM_SIM_SPEED is \"0.0009\", but must be \"unthrottled\" or a number from 0.001 to 1000000 (0 = unthrottled)"},
    {"OPSTREAM_SIM_DEVICES", "0", "OPSTREAM_SIM_DEVICES is \"0\", but must be a whole number from 1 to 64"},
    {"OPSTREAM_SIM_DEVICES", "65", "OPSTREAM_SIM_DEVICES is \"65\", but must be a whole number from 1 to 64"},
    {"OPSTREAM_SIM_DEVICES", "1.5", "OPSTREAM_SIM_DEVICES is \"1.5\", but must be a whole number from 1 to 64"},
    {"OPSTREAM_SIM_CLOCK_OFFSET_NS", "", "OPSTREAM_SIM_CLOCK_OFFSET_NS is \"\", but must be a whole number from 0 to 10^18"},
};

static void expect_child_succeeds(pid_t child) {
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    EXPECT_EQUAL(WEXITSTATUS(status), 0);
}

static uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void test_bad(void) {
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pid_t child = fork();
        if (child == 0) {
            setenv(bad[i].variable, bad[i].value, 1);
            EXPECT_EQUAL(aclInit(NULL), ACL_ERROR_INVALID_PARAM);
            EXPECT_TEXT(aclGetRecentErrMsg(), bad[i].complaint);
            EXPECT(!sim_initialised());
            _exit(0);
        }
        expect_child_succeeds(child);
    }
}

static void test_good(void) {
    pid_t child = fork();
    if (child == 0) {
        setenv("OPSTREAM_SIM_SPEED", "2.5", 1);
        setenv("OPSTREAM_SIM_DEVICES", "64", 1);
        setenv("OPSTREAM_SIM_CLOCK_OFFSET_NS", "0", 1);
        EXPECT_EQUAL(aclInit(NULL), ACL_SUCCESS);
        EXPECT(sim_initialised());
        EXPECT(sim_speed() == 2.5);
        EXPECT_EQUAL(sim_device_count(), 64);
        EXPECT_EQUAL(aclrtSetDevice(63), ACL_SUCCESS);
        uint64_t before_ns = monotonic_ns();
        uint64_t tick_ns = sim_clock_ns();
        EXPECT(tick_ns >= before_ns && tick_ns <= monotonic_ns());
        _exit(0);
    }
    expect_child_succeeds(child);
}

static void test_defaults(void) {
    uint64_t before_ns = monotonic_ns();
    uint64_t tick_ns = sim_clock_ns() - UINT64_C(86400000000000);
    EXPECT(tick_ns >= before_ns && tick_ns <= monotonic_ns());
    EXPECT(sim_speed() == 1);
    EXPECT_EQUAL(sim_device_count(), 8);
    EXPECT_EQUAL(aclInit(NULL), ACL_SUCCESS);
    EXPECT_EQUAL(aclFinalize(), ACL_SUCCESS);
    EXPECT(!sim_initialised());
}

int main(void) {
    test_bad();
    test_good();
    test_defaults();
    return 0;
}
