/* A serving application: loads a model, executes it on and on, and says at its end what it made. It knows nothing of opstreamd.
 *
 *   opstream-sim-app WORKLOAD MODEL DEVICE EXECUTIONS SECONDS INTERVAL_NS
 *
 * EXECUTIONS and SECONDS end it (0: not), and so do SIGINT and SIGTERM. INTERVAL_NS is from the start of one execution to the next (0: one
 * after the other). Exit status 0; 1 when AscendCL refuses something; 2 for wrong arguments. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acl/acl.h"
#include "tally.h"
#include "workload_copy.h"

#define SECOND_NS UINT64_C(1000000000)

const char *workload_complaint(void); /* what aclGetRecentErrMsg says of libascendcl.so, of the reader in here */

static volatile sig_atomic_t told;

static void tell(int number) {
    (void)number;
    told = 1;
}

static bool succeeds(aclError error, const char *call) {
    if (error == ACL_SUCCESS) {
        return true;
    }
    const char *message = aclGetRecentErrMsg();
    fprintf(stderr, "opstream-sim-app: %s: aclError %d%s%s\n", call, error, message ? ": " : "", message ? message : "");
    return false;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t time_ns) {
    struct timespec until = {.tv_sec = (time_t)(time_ns / SECOND_NS), .tv_nsec = (long)(time_ns % SECOND_NS)};
    while (!told && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

static aclmdlDataset *make_dataset(aclmdlDesc *description, size_t count, size_t (*bytes_of)(aclmdlDesc *, size_t)) {
    aclmdlDataset *dataset = aclmdlCreateDataset();
    for (size_t i = 0; dataset && i < count; i++) {
        size_t bytes = bytes_of(description, i);
        void *memory = NULL;
        if (!succeeds(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc") ||
            !succeeds(aclmdlAddDatasetBuffer(dataset, aclCreateDataBuffer(memory, bytes)), "aclmdlAddDatasetBuffer")) {
            return NULL;
        }
    }
    return dataset;
}

static void free_dataset(aclmdlDataset *dataset) {
    for (size_t i = 0; i < aclmdlGetDatasetNumBuffers(dataset); i++) {
        aclDataBuffer *buffer = aclmdlGetDatasetBuffer(dataset, i);
        aclrtFree(aclGetDataBufferAddr(buffer));
        aclDestroyDataBuffer(buffer);
    }
    aclmdlDestroyDataset(dataset);
}

struct plan {
    uint64_t executions, seconds, interval_ns;
};

static bool execute(uint32_t model, const struct plan *plan, uint64_t *ret_executions) {
    aclmdlDesc *description = aclmdlCreateDesc();
    if (!succeeds(aclmdlGetDesc(description, model), "aclmdlGetDesc")) {
        return false;
    }
    aclmdlDataset *inputs = make_dataset(description, aclmdlGetNumInputs(description), aclmdlGetInputSizeByIndex);
    aclmdlDataset *outputs = make_dataset(description, aclmdlGetNumOutputs(description), aclmdlGetOutputSizeByIndex);
    uint64_t begin_ns = now_ns(), done = 0;
    uint64_t end_ns = plan->seconds ? begin_ns + plan->seconds * SECOND_NS : UINT64_MAX;
    bool good = inputs && outputs;
    while (good && !told && now_ns() < end_ns && (plan->executions == 0 || done < plan->executions)) {
        good = succeeds(aclmdlExecute(model, inputs, outputs), "aclmdlExecute");
        done += good;
        uint64_t next_ns = begin_ns + done * plan->interval_ns;
        if (plan->interval_ns) {
            sleep_until(next_ns < end_ns ? next_ns : end_ns);
        }
    }
    if (inputs && outputs) {
        free_dataset(inputs);
        free_dataset(outputs);
    }
    aclmdlDestroyDesc(description);
    *ret_executions = done;
    return good;
}

static bool serve(const char *path, int32_t device, const struct plan *plan, uint64_t *ret_executions) {
    uint32_t model = 0;
    if (!succeeds(aclInit(NULL), "aclInit") || !succeeds(aclrtSetDevice(device), "aclrtSetDevice") ||
        !succeeds(aclmdlLoadFromFile(path, &model), "aclmdlLoadFromFile")) {
        return false;
    }
    bool good = execute(model, plan, ret_executions);
    good = succeeds(aclmdlUnload(model), "aclmdlUnload") && good;
    good = succeeds(aclrtResetDevice(device), "aclrtResetDevice") && good;
    return succeeds(aclFinalize(), "aclFinalize") && good;
}

static bool read_number(const char *text, uint64_t *ret_number) {
    char *end;
    errno = 0;
    *ret_number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && text[0] != '-';
}

int main(int argc, char **argv) {
    struct plan plan;
    uint64_t device;
    if (argc != 7 || strchr(argv[2], '/') || !read_number(argv[3], &device) || device > INT32_MAX ||
        !read_number(argv[4], &plan.executions) || !read_number(argv[5], &plan.seconds) || !read_number(argv[6], &plan.interval_ns)) {
        fprintf(stderr, "usage: opstream-sim-app WORKLOAD MODEL DEVICE EXECUTIONS SECONDS INTERVAL_NS\n");
        return 2;
    }
    const struct sigaction ending = {.sa_handler = tell};
    sigaction(SIGINT, &ending, NULL);
    sigaction(SIGTERM, &ending, NULL);
    struct workload *workload;
    struct workload_copy copy;
    if (workload_from_file(argv[1], &workload) != ACL_SUCCESS) {
        fprintf(stderr, "opstream-sim-app: %s\n", workload_complaint());
        return 1;
    }
    if (!workload_copy_make(workload, argv[2], &copy)) {
        fprintf(stderr, "opstream-sim-app: model %s: %s\n", argv[2], strerror(errno));
        workload_free(workload);
        return 1;
    }
    uint64_t executions = 0;
    bool good = serve(copy.path, (int32_t)device, &plan, &executions);
    workload_copy_remove(&copy);
    tally_print(workload, executions);
    workload_free(workload);
    return good ? 0 : 1;
}
