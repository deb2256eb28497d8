/* Which call answers what in which mode; collection, stamps and steps. */
#include "prof_case.h"

#include <pthread.h>

#define TASK_TIME ACL_PROF_TASK_TIME
#define WITH_STAMPS (ACL_PROF_TASK_TIME | ACL_PROF_MSPROFTX)

static uint32_t device_0 = 0;

static aclprofConfig *config_of(uint64_t data_types) {
    aclprofConfig *config = aclprofCreateConfig(&device_0, 1, ACL_AICORE_PIPE_UTILIZATION, NULL, data_types);
    CHECK(config);
    return config;
}

static void off(void) {
    CHECK(aclInit(NULL) == 0);
    aclprofConfig *config = config_of(WITH_STAMPS);
    CHECK(aclprofStart(config) == 0 && aclprofCreateStamp() == NULL);
    CHECK(aclprofStop(config) == 0 && aclprofFinalize() == 0);
    CHECK(aclprofStart(NULL) == 100000 && aclprofStop(NULL) == 100000);
    CHECK(aclprofModelUnSubscribe(load_model(0, 1)) == 100011);
    CHECK(aclprofDestroyConfig(config) == 0 && aclprofDestroyConfig(NULL) == 100000);
}

static void command_line(void) {
    CHECK(aclInit(NULL) == 0);
    aclprofConfig *config = config_of(TASK_TIME);
    uint32_t model = load_model(0, 1);
    CHECK(aclprofInit("/tmp", 4) == 100042 && aclprofFinalize() == 100042);
    CHECK(aclprofStart(config) == 100042 && aclprofStop(config) == 100042);
    CHECK(subscribe(model, open_stream()) == 100042 && aclprofModelUnSubscribe(model) == 100042);
    CHECK(aclprofDestroyConfig(config) == 0);
}

static void collecting(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t model = load_model(0, 1);
    struct stream stream = open_stream();
    aclprofConfig *config = config_of(TASK_TIME);
    CHECK(aclprofInit("/tmp", 4) == 0);
    CHECK(aclprofInit("/tmp", 4) == 100002);
    CHECK(subscribe(model, stream) == 148047 && aclprofModelUnSubscribe(model) == 148047);
    CHECK(aclprofStart(config) == 0 && aclprofStop(config) == 0 && aclprofFinalize() == 0);
    CHECK(subscribe(model, stream) == 0 && aclprofModelUnSubscribe(model) == 0);
    CHECK(aclprofDestroyConfig(config) == 0);
}

static void subscribed(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t model = load_model(0, 1);
    aclprofConfig *config = config_of(TASK_TIME);
    CHECK(subscribe(model, open_stream()) == 0);
    CHECK(aclprofInit("/tmp", 4) == 148047 && aclprofFinalize() == 148047);
    CHECK(aclprofStart(config) == 148047 && aclprofStop(config) == 148047);
    CHECK(aclprofModelUnSubscribe(model) == 0);
    CHECK(aclprofInit("/tmp", 4) == 0 && aclprofFinalize() == 0);
    CHECK(aclprofDestroyConfig(config) == 0);
}

static void paths_and_settings(void) {
    CHECK(aclInit(NULL) == 0);
    char path[4097];
    memset(path, 'a', sizeof path);
    path[4096] = '\0';
    CHECK(aclprofInit(path, 4096) == 100000);
    CHECK(aclprofInit("", 0) == 100000 && aclprofInit(NULL, 4) == 100000);
    CHECK(aclprofInit("/tmp", 3) == 100000 && aclprofInit("/tmp", 5) == 100000);
    CHECK(aclprofInit("/tmp/a;b", 8) == 100003);
    path[4095] = '\0';
    CHECK(aclprofInit(path, 4095) == 0 && aclprofFinalize() == 0);

    char setting[258];
    memset(setting, '1', sizeof setting);
    setting[257] = '\0';
    CHECK(aclprofSetConfig(2, setting, 257) == 100000);
    setting[256] = '\0';
    CHECK(aclprofSetConfig(2, setting, 256) == 0);
    CHECK(aclprofSetConfig(2, NULL, 1) == 100000 && aclprofSetConfig(2, "50", 1) == 100000);
    CHECK(aclprofSetConfig(0, "50", 2) == 100000 && aclprofSetConfig(99, "50", 2) == 100000);
    CHECK(aclprofSetConfig(1, "100MB", 5) == 0 && aclprofSetConfig(1, "much", 4) == 100010);
    CHECK(aclprofSetConfig(3, "5 0", 3) == 100010);
}

static void devices(void) {
    CHECK(aclInit(NULL) == 0);
    uint32_t twice[] = {1, 1}, beyond[] = {0, 8}, good[] = {0, 7, 3};
    aclprofAicoreMetrics none = ACL_AICORE_NONE;
    CHECK(aclprofCreateConfig(twice, 2, none, NULL, TASK_TIME) == NULL);
    CHECK(aclprofCreateConfig(beyond, 2, none, NULL, TASK_TIME) == NULL);
    CHECK(aclprofCreateConfig(NULL, 1, none, NULL, TASK_TIME) == NULL);
    CHECK(aclprofCreateConfig(good, 0, none, NULL, TASK_TIME) == NULL);
    CHECK(aclprofCreateConfig(good, 3, none, (const aclprofAicoreEvents *)(const void *)good, TASK_TIME) == NULL);
    CHECK(aclprofCreateConfig(good, 3, (aclprofAicoreMetrics)77, NULL, TASK_TIME) == NULL);
    aclprofConfig *config = aclprofCreateConfig(good, 3, none, NULL, TASK_TIME);
    CHECK(config && aclprofDestroyConfig(config) == 0);
}

static void start_and_stop(void) {
    CHECK(aclInit(NULL) == 0);
    aclprofConfig *types = config_of(WITH_STAMPS), *other = config_of(TASK_TIME), *unsupported = config_of(1ULL << 50);
    CHECK(aclprofInit("/tmp", 4) == 0);
    CHECK(aclprofStart(types) == 0 && aclprofStart(types) == 0);
    CHECK(aclprofStop(other) == 100010 && aclprofStop(types) == 0);

    CHECK(aclprofStart(unsupported) == 200007 && aclprofStop(unsupported) == 200007);
    CHECK(aclprofStart(types) == 0 && aclprofCreateStamp() == NULL);
    CHECK(aclprofStop(types) == 0 && aclprofStart(types) == 0);
    void *stamp = aclprofCreateStamp();
    CHECK(stamp);
    aclprofDestroyStamp(stamp);

    CHECK(aclprofFinalize() == 0 && aclprofInit("/tmp", 4) == 0);
    CHECK(aclprofStart(types) == 0 && aclprofCreateStamp() == NULL);
    CHECK(aclprofStop(types) == 0 && aclprofStart(types) == 0 && (stamp = aclprofCreateStamp()));
    CHECK(aclprofStop(types) == 0 && aclprofCreateStamp() == NULL && aclprofFinalize() == 0);
    aclprofDestroyConfig(types);
    aclprofDestroyConfig(other);
    aclprofDestroyConfig(unsupported);
}

static void *pop(void *unused) {
    CHECK(aclprofPop() == 0);
    return unused;
}

static void stamps(void) {
    CHECK(aclInit(NULL) == 0);
    aclprofConfig *config = config_of(WITH_STAMPS);
    char message[128];
    memset(message, 'm', sizeof message);
    message[127] = '\0';
    CHECK(aclprofInit("/tmp", 4) == 0 && aclprofStart(config) == 0);

    void *stamp = aclprofCreateStamp();
    CHECK(aclprofSetStampTraceMessage(stamp, message, 126) == 0 && aclprofSetStampTraceMessage(stamp, message, 127) == -1);
    CHECK(aclprofSetStampTraceMessage(NULL, message, 1) == -1 && aclprofSetStampTraceMessage(stamp, NULL, 0) == -1);
    CHECK(aclprofMark(stamp) == 0 && aclprofMark(NULL) == -1);
    CHECK(aclprofMarkEx("here", 4, NULL) == 0 && aclprofMarkEx("here", 3, NULL) == -1);

    pthread_t thread;
    CHECK(aclprofPush(NULL) == 100000 && aclprofPop() == -1 && aclprofPush(stamp) == 0);
    CHECK(pthread_create(&thread, NULL, pop, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(aclprofPop() == -1);

    uint32_t range = 1000;
    CHECK(aclprofRangeStart(NULL, &range) == 100000 && aclprofRangeStart(stamp, NULL) == 100000 && range == 1000);
    CHECK(aclprofRangeStop(0) == -1);
    CHECK(aclprofRangeStart(stamp, &range) == 0 && range < 100);
    CHECK(aclprofRangeStop(range) == 0 && aclprofRangeStop(range) == 0 && aclprofRangeStop(100) == -1);
    aclprofDestroyStamp(stamp);
    CHECK(aclprofMark(stamp) == -1 && aclprofPush(stamp) == -1);

    for (int i = 0; i < 100; i++) {
        CHECK(aclprofCreateStamp());
    }
    CHECK(aclprofCreateStamp() == NULL);
    CHECK(aclprofStop(config) == 0 && aclprofFinalize() == 0);
    CHECK(aclprofInit("/tmp", 4) == 0 && aclprofStart(config) == 0);
    CHECK(aclprofCreateStamp() == NULL);
    CHECK(aclprofStop(config) == 0 && aclprofFinalize() == 0);
    aclprofDestroyConfig(config);
}

static void steps(void) {
    CHECK(aclInit(NULL) == 0);
    aclprofStepInfo *step = aclprofCreateStepInfo();
    CHECK(aclprofGetStepTimestamp(NULL, ACL_STEP_START, NULL) == 100000);
    CHECK(aclprofGetStepTimestamp(step, ACL_STEP_END, NULL) == 0 && aclprofGetStepTimestamp(step, ACL_STEP_END, NULL) == 100000);
    CHECK(aclprofGetStepTimestamp(step, ACL_STEP_START, NULL) == 0 && aclprofGetStepTimestamp(step, ACL_STEP_START, NULL) == 100000);
    aclprofDestroyStepInfo(step);
    aclprofDestroyStepInfo(NULL);
}

static const struct prof_case cases[] = {
    {.name = "off", .run = off},
    {.name = "command_line", .run = command_line, .variable = "OPSTREAM_SIM_COMMAND_LINE=1"},
    {.name = "collecting", .run = collecting},
    {.name = "subscribed", .run = subscribed},
    {.name = "paths_and_settings", .run = paths_and_settings},
    {.name = "devices", .run = devices},
    {.name = "start_and_stop", .run = start_and_stop},
    {.name = "stamps", .run = stamps},
    {.name = "steps", .run = steps},
};

RUN_CASES(cases)
