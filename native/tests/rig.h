/* rig.h: AscendCL (the simulator's) with a small model, for tests of what reads its records. A case runs in a child process of its own, as
 * the vendor's state is the process's and its environment is read when it is loaded. */
#ifndef OPSTREAM_RIG_H
#define OPSTREAM_RIG_H

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"
#include "vendor.h"

#define RIG_PATIENCE_MS 60000
#define RIG_METRICS_NONE 0xFF
#define RIG_JOURNAL_BYTES 2080

struct rig {
    struct vendor vendor;
    int (*model_load)(const char *path, uint32_t *ret_model_id);
    void *(*dataset_create)(void);
    int (*dataset_destroy)(const void *dataset);
    int (*model_execute)(uint32_t model_id, const void *input, void *output);
    int (*set_device)(int32_t device);
};

static inline void *rig_function(void *library, const char *name) {
    void *address = dlsym(library, name);
    if (address == NULL) {
        CHECK_FAIL("%s is missing", name);
    }
    return address;
}

/* Loads AscendCL and initialises it. */
static inline struct rig rig_open(void) {
    char text[512];
    struct vendor_library library;
    struct rig rig;
    if (vendor_library_open(getenv("OPSTREAM_SIM_LIBRARY_PATH"), text, sizeof text, &library) != OPSTREAM_OK ||
        vendor_load(&library, text, sizeof text, &rig.vendor) != OPSTREAM_OK) {
        CHECK_FAIL("%s", text);
    }
    int (*init)(const char *) = (int (*)(const char *))rig_function(library.ascendcl, "aclInit");
    rig.set_device = (int (*)(int32_t))rig_function(library.ascendcl, "aclrtSetDevice");
    rig.model_load = (int (*)(const char *, uint32_t *))rig_function(library.ascendcl, "aclmdlLoadFromFile");
    rig.dataset_create = (void *(*)(void))rig_function(library.ascendcl, "aclmdlCreateDataset");
    rig.dataset_destroy = (int (*)(const void *))rig_function(library.ascendcl, "aclmdlDestroyDataset");
    rig.model_execute = (int (*)(uint32_t, const void *, void *))rig_function(library.ascendcl, "aclmdlExecute");
    CHECK_EQ_INT(init(NULL), 0);
    CHECK_EQ_INT(rig.set_device(0), 0);
    return rig;
}

/* Loads a model on device 0 from a workload's lines ("op\tSTART\tDURATION\tTYPE\tNAME\n"…). */
static inline uint32_t rig_load(const struct rig *rig, const char *lines) {
    char path[] = "/tmp/opstream-rig-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    FILE *file = fdopen(fd, "w");
    CHECK(file != NULL);
    fprintf(file, "opstream-workload 1\n%s", lines);
    CHECK(fclose(file) == 0);
    uint32_t model_id;
    CHECK_EQ_INT(rig->model_load(path, &model_id), 0);
    unlink(path);
    return model_id;
}

static inline void rig_execute(const struct rig *rig, uint32_t model_id, unsigned times) {
    void *input = rig->dataset_create(), *output = rig->dataset_create();
    for (unsigned i = 0; i < times; i++) {
        CHECK_EQ_INT(rig->model_execute(model_id, input, output), 0);
    }
    rig->dataset_destroy(input);
    rig->dataset_destroy(output);
}

/* `write_end` lives as long as the process. */
static inline void rig_subscribe(const struct rig *rig, uint32_t model_id, int *write_end) {
    void *config = rig->vendor.create_subscribe_config(1, RIG_METRICS_NONE, write_end);
    CHECK(config != NULL);
    CHECK_EQ_INT(rig->vendor.model_subscribe(model_id, config), 0);
    CHECK_EQ_INT(rig->vendor.destroy_subscribe_config(config), 0);
}

/* Executes a model, subscribed for that time, and returns the bytes of its records; they must fit into a pipe of 1 MiB. The caller frees
 * them. */
static inline uint8_t *rig_records(const struct rig *rig, uint32_t model_id, unsigned executions, size_t *ret_bytes) {
    static int write_end;
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
    write_end = ends[1];
    rig_subscribe(rig, model_id, &write_end);
    rig_execute(rig, model_id, executions);
    CHECK_EQ_INT(rig->vendor.model_unsubscribe(model_id), 0);
    uint8_t *bytes = malloc(1 << 20);
    size_t count = 0;
    for (ssize_t got; (got = read(ends[0], bytes + count, (1 << 20) - count)) > 0;) {
        count += (size_t)got;
    }
    close(ends[0]);
    *ret_bytes = count;
    return bytes;
}

/* What the simulator really did, by the name in its journal (see rig_case). */
static inline uint64_t rig_journal(const char *name) {
    int fd = open(getenv("OPSTREAM_SIM_JOURNAL"), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    const char *journal = mmap(NULL, RIG_JOURNAL_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(journal != MAP_FAILED);
    close(fd);
    for (const char *slot = journal + 32; slot < journal + RIG_JOURNAL_BYTES; slot += 32) {
        if (strncmp(slot, name, 24) == 0) {
            uint64_t value = __atomic_load_n((const uint64_t *)(const void *)(slot + 24), __ATOMIC_RELAXED);
            munmap((void *)journal, RIG_JOURNAL_BYTES);
            return value;
        }
    }
    CHECK_FAIL("the journal has no %s", name);
}

/* Runs a case in a child, on a simulator with these faults ("" = none); its failure is the test's. */
static inline void rig_case(void (*test)(void), const char *faults) {
    char journal[] = "/tmp/opstream-journal-XXXXXX";
    int fd = mkstemp(journal);
    CHECK(fd >= 0);
    close(fd);
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        setenv("OPSTREAM_SIM_SPEED", "0", 1);
        setenv("OPSTREAM_SIM_JOURNAL", journal, 1);
        if (faults[0] != '\0') {
            setenv("OPSTREAM_SIM_FAULTS", faults, 1);
        }
        test();
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    unlink(journal);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        CHECK_FAIL("a case ended with status 0x%x, faults \"%s\"", (unsigned)status, faults);
    }
}

#endif
