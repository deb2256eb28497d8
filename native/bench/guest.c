/* A serving program, to see what it costs to be one with a subscription of its own, and with the agent preloaded instead:
 *
 *   guest WORKLOAD EXECUTIONS alone|subscribed
 *
 * "subscribed": as the vendor's documentation has it, a thread that reads the pipe and asks every getter. Prints {"ready_ns": when the model
 * was loaded, and subscribed (CLOCK_MONOTONIC), "resident_kb": after all executions and the unload}. */
#include <acl/acl.h>
#include <acl/acl_prof.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int ends[2];

static void check(int code, const char *call) {
    if (code != 0) {
        fprintf(stderr, "%s failed: %d\n", call, code);
        exit(1);
    }
}

#define CALL(function, ...) check(function(__VA_ARGS__), #function)

static void *read_records(void *bytes_of_record) {
    static char record[256], text[1024];
    size_t bytes = *(size_t *)bytes_of_record;
    while (read(ends[0], record, bytes) == (ssize_t)bytes) {
        memset(text, 0, sizeof text);
        aclprofGetOpType(record, bytes, 0, text, sizeof text);
        memset(text, 0, sizeof text);
        aclprofGetOpName(record, bytes, 0, text, sizeof text);
    }
    return NULL;
}

static void subscribe(uint32_t model) {
    static size_t bytes;
    pthread_t thread;
    CALL(aclprofGetOpDescSize, &bytes);
    CALL(pipe2, ends, O_CLOEXEC);
    fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
    CALL(pthread_create, &thread, NULL, read_records, &bytes);
    aclprofSubscribeConfig *config = aclprofCreateSubscribeConfig(1, ACL_AICORE_NONE, &ends[1]);
    CALL(aclprofModelSubscribe, model, config);
    aclprofDestroySubscribeConfig(config);
}

static long resident_kb(void) {
    char line[256];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kb = atol(line + 6);
        }
    }
    return kb;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        return 2;
    }
    int subscribed = strcmp(argv[3], "subscribed") == 0;
    uint32_t model;
    CALL(aclInit, NULL);
    CALL(aclrtSetDevice, 0);
    CALL(aclmdlLoadFromFile, argv[1], &model);
    if (subscribed) {
        subscribe(model);
    }
    struct timespec ready;
    clock_gettime(CLOCK_MONOTONIC, &ready);
    aclmdlDataset *inputs = aclmdlCreateDataset(), *outputs = aclmdlCreateDataset();
    for (int i = 0; i < atoi(argv[2]); i++) {
        CALL(aclmdlExecute, model, inputs, outputs);
    }
    if (subscribed) {
        CALL(aclprofModelUnSubscribe, model);
    }
    CALL(aclmdlUnload, model);
    printf("{\"ready_ns\": %" PRIu64 ", \"resident_kb\": %ld}\n", (uint64_t)ready.tv_sec * 1000000000u + (uint64_t)ready.tv_nsec,
           resident_kb());
    return 0;
}
