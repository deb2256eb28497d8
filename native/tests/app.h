/* app.h: an application on the simulator, for tests that need more models than a hosted worker has. Its models have no inputs and no
 * outputs; each operator's duration is told in its line, at any speed. */
#ifndef OPSTREAM_APP_H
#define OPSTREAM_APP_H

#include <dlfcn.h>

#include "check.h"
#include "vendor.h"

/* One execution: what there is to count. */
#define APP_OPERATORS 3u
#define APP_CONV1_NS 2000u
#define APP_CONV2_NS 3500u
#define APP_RELU_NS 700u

static const char app_workload[] = "opstream-workload 1\n"
                                   "op\t0\t2000\tConv2D\tconv1\n"
                                   "op\t2100\t3500\tConv2D\tconv2\n"
                                   "op\t5700\t700\tRelu\trelu\n";

static struct app {
    int (*init)(const char *config);
    int (*set_device)(int32_t device);
    int (*load)(const void *model, size_t bytes, uint32_t *id);
    void *(*create_dataset)(void);
    int (*execute)(uint32_t id, const void *inputs, void *outputs);
    void *inputs, *outputs;
} app;

static inline const char *app_library_path(void) {
    const char *path = getenv("OPSTREAM_SIM_LIBRARY_PATH");
    CHECK(path && *path);
    return path;
}

static inline void *app_function(const struct vendor_library *library, const char *name) {
    void *function = dlsym(library->ascendcl, name);
    CHECK(function);
    return function;
}

static inline void app_start(void) {
    struct vendor_library library;
    setenv("OPSTREAM_SIM_SPEED", "0", 1);
    CHECK_EQ_INT(vendor_library_open(app_library_path(), NULL, 0, &library), 0);
    *(void **)&app.init = app_function(&library, "aclInit");
    *(void **)&app.set_device = app_function(&library, "aclrtSetDevice");
    *(void **)&app.load = app_function(&library, "aclmdlLoadFromMem");
    *(void **)&app.create_dataset = app_function(&library, "aclmdlCreateDataset");
    *(void **)&app.execute = app_function(&library, "aclmdlExecute");
    CHECK_EQ_INT(app.init(NULL), 0);
    app.inputs = app.create_dataset();
    app.outputs = app.create_dataset();
}

static inline uint32_t app_load(uint32_t device) {
    uint32_t id;
    CHECK_EQ_INT(app.set_device((int32_t)device), 0);
    CHECK_EQ_INT(app.load(app_workload, sizeof app_workload - 1, &id), 0);
    return id;
}

/* In any thread. */
static inline void app_execute(uint32_t device, uint32_t model_id, unsigned times) {
    CHECK_EQ_INT(app.set_device((int32_t)device), 0);
    for (unsigned i = 0; i < times; i++) {
        CHECK_EQ_INT(app.execute(model_id, app.inputs, app.outputs), 0);
    }
}

#endif
