/* What executions tell the profiler: on which device, of which model, how often, in which order, and at which speed. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "expect.h"
#include "records.h"
#include "sim.h"

#define WORKLOAD "opstream-workload 1\nop\t0\t1000\tA\ta\nop\t800\t1000\tB\tb\nop\t2000000\t500\tC\tc\n"
#define EXECUTIONS 20u

static uint32_t load(void) {
    uint32_t id = 0;
    EXPECT_EQUAL(aclmdlLoadFromMem(WORKLOAD, strlen(WORKLOAD), &id), ACL_SUCCESS);
    return id;
}

static aclmdlDataset *none;

/* Runs in a process of its own, as the speed is read once. */
static void expect_listing(const char *speed, const char *listing) {
    pid_t child = fork();
    int status = 0;
    EXPECT(child >= 0);
    if (child == 0) {
        setenv("OPSTREAM_SIM_SPEED", speed, 1);
        EXPECT_EQUAL(aclInit(NULL), ACL_SUCCESS);
        EXPECT_EQUAL(aclrtSetDevice(0), ACL_SUCCESS);
        none = aclmdlCreateDataset();
        uint64_t before_ns = sim_clock_ns();
        EXPECT_EQUAL(aclmdlExecute(load(), none, none), ACL_SUCCESS);
        uint64_t after_ns = sim_clock_ns();
        char *actual = records_listing();
        EXPECT_TEXT(actual, listing);
        EXPECT(records_at(3)->start_ns >= before_ns && records_at(3)->end_ns <= after_ns);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status));
    EXPECT_EQUAL(WEXITSTATUS(status), 0);
}

/* Starts follow the speed, durations are always the workload's. */
static void test_speeds(void) {
    expect_listing("1", "0 1000 A a\n800 1000 B b\n2000000 500 C c\n2000500 na keypoint_op\n");
    expect_listing("4", "0 1000 A a\n200 1000 B b\n500000 500 C c\n500500 na keypoint_op\n");
    expect_listing("0.5", "0 1000 A a\n1600 1000 B b\n4000000 500 C c\n4000500 na keypoint_op\n");
}

static void test_unthrottled(void) {
    pid_t child = fork();
    int status = 0;
    EXPECT(child >= 0);
    if (child == 0) {
        setenv("OPSTREAM_SIM_SPEED", "unthrottled", 1);
        EXPECT_EQUAL(aclInit(NULL), ACL_SUCCESS);
        EXPECT(sim_speed() == 0);
        EXPECT_EQUAL(aclrtSetDevice(0), ACL_SUCCESS);
        none = aclmdlCreateDataset();
        uint64_t before_ns = sim_clock_ns();
        EXPECT_EQUAL(aclmdlExecute(load(), none, none), ACL_SUCCESS);
        uint64_t after_ns = sim_clock_ns();
        const uint64_t durations_ns[] = {1000, 1000, 500};
        const struct record *execution = records_at(3);
        uint64_t last_end_ns = 0;
        for (size_t i = 0; i < 3; i++) {
            const struct record *record = records_at(i);
            EXPECT(record->start_ns >= before_ns && record->start_ns <= after_ns);
            EXPECT_EQUAL(record->end_ns - record->start_ns, durations_ns[i]);
            last_end_ns = record->end_ns > last_end_ns ? record->end_ns : last_end_ns;
        }
        EXPECT_TEXT(execution->name, "keypoint_op");
        EXPECT_EQUAL(execution->start_ns, records_at(0)->start_ns);
        EXPECT_EQUAL(execution->end_ns, last_end_ns);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status));
    EXPECT_EQUAL(WEXITSTATUS(status), 0);
}

struct server {
    pthread_t thread;
    int32_t device;
    uint32_t id;
};

static void *serve(void *argument) {
    struct server *server = argument;
    EXPECT_EQUAL(aclrtSetDevice(server->device), ACL_SUCCESS);
    server->id = load();
    for (unsigned i = 0; i < EXECUTIONS; i++) {
        EXPECT_EQUAL(aclmdlExecute(server->id, none, none), ACL_SUCCESS);
    }
    EXPECT_EQUAL(aclrtResetDevice(server->device), ACL_SUCCESS);
    return NULL;
}

/* Two models on one device and a third on another, each from its own thread. */
static void test_concurrent(void) {
    struct server servers[] = {{.device = 1}, {.device = 1}, {.device = 2}};
    records_clear();
    for (size_t i = 0; i < 3; i++) {
        EXPECT_EQUAL(pthread_create(&servers[i].thread, NULL, serve, &servers[i]), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        EXPECT_EQUAL(pthread_join(servers[i].thread, NULL), 0);
    }
    EXPECT_EQUAL(records_count(), 3 * EXECUTIONS * 4);
    for (size_t i = 0; i < 3; i++) {
        static const char *const order[] = {"a", "b", "c", "keypoint_op"};
        size_t seen = 0;
        uint32_t device = 0;
        EXPECT(sim_model_device(servers[i].id, &device));
        EXPECT_EQUAL(device, servers[i].device);
        for (size_t j = 0; j < records_count(); j++) {
            const struct record *record = records_at(j);
            if (record->model_id == servers[i].id) {
                EXPECT_TEXT(record->name, order[seen++ % 4]);
                EXPECT_EQUAL(record->device, device);
            }
        }
        EXPECT_EQUAL(seen, EXECUTIONS * 4);
        EXPECT_EQUAL(aclmdlUnload(servers[i].id), ACL_SUCCESS);
        EXPECT_EQUAL(records_last_unloaded(), servers[i].id);
        EXPECT(!sim_model_device(servers[i].id, &device));
    }
}

/* Unloading waits for what is in the stream, and ids aren't given twice. */
static void test_unload(void) {
    aclrtStream stream;
    uint32_t id = load();
    records_clear();
    EXPECT_EQUAL(aclrtCreateStream(&stream), ACL_SUCCESS);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQUAL(aclmdlExecuteAsync(id, none, none, stream), ACL_SUCCESS);
    }
    EXPECT_EQUAL(aclmdlUnload(id), ACL_SUCCESS);
    EXPECT_EQUAL(records_count(), 12);
    EXPECT(records_at(7)->end_ns <= records_at(8)->start_ns);
    EXPECT_EQUAL(aclmdlExecuteAsync(id, none, none, stream), ACL_ERROR_INVALID_MODEL_ID);
    EXPECT_EQUAL(aclrtDestroyStream(stream), ACL_SUCCESS);
    uint32_t next = load();
    EXPECT_EQUAL(next, id + 1);
    EXPECT_EQUAL(aclmdlUnload(next), ACL_SUCCESS);
}

int main(void) {
    records_attach();
    test_speeds();
    test_unthrottled();

    EXPECT_EQUAL(aclInit(NULL), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtSetDevice(0), ACL_SUCCESS);
    none = aclmdlCreateDataset();
    uint32_t first = load();
    EXPECT_EQUAL(first, 1);
    EXPECT_EQUAL(aclmdlUnload(first), ACL_SUCCESS);
    test_concurrent();
    test_unload();
    EXPECT_EQUAL(aclmdlDestroyDataset(none), ACL_SUCCESS);
    records_clear();
    EXPECT_EQUAL(aclrtResetDevice(0), ACL_SUCCESS);
    EXPECT_EQUAL(aclFinalize(), ACL_SUCCESS);
    return 0;
}
