/* AscendCL is found at run time, as everywhere here; of its types none is needed but pointers. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opstream.h"
#include "vendor.h"

#define ACL_REPEAT_INITIALISE 100002
#define ACL_MEMORY_HUGE_FIRST 0
#define ACL_COPY_HOST_TO_DEVICE 1
#define ACL_COPY_DEVICE_TO_DEVICE 3
#define ACL_RUNS_ON_DEVICE 0 /* the host's memory is the device's */
#define DYNAMIC_INPUT "ascend_mbatch_shape_data"

struct acl {
    int (*init)(const char *config);
    int (*finalize)(void);
    const char *(*recent_message)(void);
    int (*set_device)(int32_t device);
    int (*reset_device)(int32_t device);
    int (*create_context)(void **context, int32_t device);
    int (*destroy_context)(void *context);
    int (*run_mode)(int *mode);
    int (*allocate)(void **memory, size_t bytes, int policy);
    int (*release)(void *memory);
    int (*copy)(void *to, size_t to_bytes, const void *from, size_t bytes, int kind);
    int (*load)(const char *path, uint32_t *id);
    int (*unload)(uint32_t id);
    void *(*create_description)(void);
    int (*destroy_description)(void *description);
    int (*describe)(void *description, uint32_t id);
    size_t (*inputs)(void *description);
    size_t (*outputs)(void *description);
    size_t (*input_bytes)(void *description, size_t index);
    size_t (*output_bytes)(void *description, size_t index);
    int (*input_by_name)(const void *description, const char *name, size_t *index);
    int (*set_dynamic_batch)(uint32_t id, void *dataset, size_t index, uint64_t batch);
    void *(*create_dataset)(void);
    int (*destroy_dataset)(const void *dataset);
    int (*add_buffer)(void *dataset, void *buffer);
    size_t (*buffers)(const void *dataset);
    void *(*buffer)(const void *dataset, size_t index);
    void *(*create_buffer)(void *memory, size_t bytes);
    int (*destroy_buffer)(const void *buffer);
    void *(*buffer_memory)(const void *buffer);
    int (*execute)(uint32_t id, const void *inputs, void *outputs);
};

static const struct {
    const char *name;
    size_t offset;
    bool needed;
} functions[] = {
    {"aclInit", offsetof(struct acl, init), true},
    {"aclFinalize", offsetof(struct acl, finalize), true},
    {"aclGetRecentErrMsg", offsetof(struct acl, recent_message), false},
    {"aclrtSetDevice", offsetof(struct acl, set_device), true},
    {"aclrtResetDevice", offsetof(struct acl, reset_device), true},
    {"aclrtCreateContext", offsetof(struct acl, create_context), true},
    {"aclrtDestroyContext", offsetof(struct acl, destroy_context), true},
    {"aclrtGetRunMode", offsetof(struct acl, run_mode), true},
    {"aclrtMalloc", offsetof(struct acl, allocate), true},
    {"aclrtFree", offsetof(struct acl, release), true},
    {"aclrtMemcpy", offsetof(struct acl, copy), true},
    {"aclmdlLoadFromFile", offsetof(struct acl, load), true},
    {"aclmdlUnload", offsetof(struct acl, unload), true},
    {"aclmdlCreateDesc", offsetof(struct acl, create_description), true},
    {"aclmdlDestroyDesc", offsetof(struct acl, destroy_description), true},
    {"aclmdlGetDesc", offsetof(struct acl, describe), true},
    {"aclmdlGetNumInputs", offsetof(struct acl, inputs), true},
    {"aclmdlGetNumOutputs", offsetof(struct acl, outputs), true},
    {"aclmdlGetInputSizeByIndex", offsetof(struct acl, input_bytes), true},
    {"aclmdlGetOutputSizeByIndex", offsetof(struct acl, output_bytes), true},
    {"aclmdlGetInputIndexByName", offsetof(struct acl, input_by_name), false},
    {"aclmdlSetDynamicBatchSize", offsetof(struct acl, set_dynamic_batch), false},
    {"aclmdlCreateDataset", offsetof(struct acl, create_dataset), true},
    {"aclmdlDestroyDataset", offsetof(struct acl, destroy_dataset), true},
    {"aclmdlAddDatasetBuffer", offsetof(struct acl, add_buffer), true},
    {"aclmdlGetDatasetNumBuffers", offsetof(struct acl, buffers), true},
    {"aclmdlGetDatasetBuffer", offsetof(struct acl, buffer), true},
    {"aclCreateDataBuffer", offsetof(struct acl, create_buffer), true},
    {"aclDestroyDataBuffer", offsetof(struct acl, destroy_buffer), true},
    {"aclGetDataBufferAddr", offsetof(struct acl, buffer_memory), true},
    {"aclmdlExecute", offsetof(struct acl, execute), true},
};

/* What has been had so far: opstream_model_close gives back just that. */
struct opstream_model {
    struct acl acl;
    uint32_t id;
    int32_t device;
    bool initialised, device_set, loaded;
    void *context, *description, *inputs, *outputs;
};

static bool hosting; /* a process hosts one model, on its main thread */

/* Where a failure is told. */
struct report {
    char *text;
    size_t bytes;
    int acl_error;
};

static int fail(const struct acl *acl, struct report *report, const char *call, int acl_error) {
    const char *message = acl->recent_message ? acl->recent_message() : NULL;
    snprintf(report->text, report->bytes, message ? "%s: %s" : "%s", call, message);
    report->acl_error = acl_error;
    return OPSTREAM_E_VENDOR;
}

static int find_functions(const char *library_path, struct acl *ret_acl, struct report *report) {
    struct vendor_library library;
    int status = vendor_library_open(library_path, report->text, report->bytes, &library);
    if (status != OPSTREAM_OK) {
        return status;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(library.ascendcl, functions[i].name);
        if (!address && functions[i].needed) {
            snprintf(report->text, report->bytes, "libascendcl.so has no %s", functions[i].name);
            return OPSTREAM_E_LIBRARY;
        }
        memcpy((char *)ret_acl + functions[i].offset, &address, sizeof address);
    }
    return OPSTREAM_OK;
}

static int start(struct opstream_model *model, struct report *report) {
    const struct acl *acl = &model->acl;
    int error = acl->init(NULL);
    if (error != 0 && error != ACL_REPEAT_INITIALISE) {
        return fail(acl, report, "aclInit", error);
    }
    model->initialised = error == 0;
    if ((error = acl->set_device(model->device)) != 0) {
        return fail(acl, report, "aclrtSetDevice", error);
    }
    model->device_set = true;
    if ((error = acl->create_context(&model->context, model->device)) != 0) {
        return fail(acl, report, "aclrtCreateContext", error);
    }
    return OPSTREAM_OK;
}

static int load(struct opstream_model *model, const char *path, struct report *report) {
    const struct acl *acl = &model->acl;
    int error = acl->load(path, &model->id);
    if (error != 0) {
        return fail(acl, report, "aclmdlLoadFromFile", error);
    }
    model->loaded = true;
    model->description = acl->create_description();
    if (!model->description) {
        return fail(acl, report, "aclmdlCreateDesc", 0);
    }
    if ((error = acl->describe(model->description, model->id)) != 0) {
        return fail(acl, report, "aclmdlGetDesc", error);
    }
    return OPSTREAM_OK;
}

/* Device memory as it is had holds anything. */
static int clear(const struct acl *acl, void *memory, size_t bytes, struct report *report) {
    int mode, error = acl->run_mode(&mode);
    if (error != 0) {
        return fail(acl, report, "aclrtGetRunMode", error);
    }
    void *zeros = calloc(1, bytes);
    if (!zeros) {
        return OPSTREAM_E_MEMORY;
    }
    error = acl->copy(memory, bytes, zeros, bytes, mode == ACL_RUNS_ON_DEVICE ? ACL_COPY_DEVICE_TO_DEVICE : ACL_COPY_HOST_TO_DEVICE);
    free(zeros);
    return error == 0 ? OPSTREAM_OK : fail(acl, report, "aclrtMemcpy", error);
}

/* One more buffer of zeros. An output whose size depends on the input has 0 bytes here: AscendCL allocates it. */
static int add_buffer(const struct acl *acl, void *dataset, size_t bytes, struct report *report) {
    void *memory = NULL;
    int error = bytes > 0 ? acl->allocate(&memory, bytes, ACL_MEMORY_HUGE_FIRST) : 0;
    if (error != 0) {
        return fail(acl, report, "aclrtMalloc", error);
    }
    int status = memory ? clear(acl, memory, bytes, report) : OPSTREAM_OK;
    void *buffer = NULL;
    if (status == OPSTREAM_OK && !(buffer = acl->create_buffer(memory, bytes))) {
        status = fail(acl, report, "aclCreateDataBuffer", 0);
    }
    if (status == OPSTREAM_OK && (error = acl->add_buffer(dataset, buffer)) != 0) {
        status = fail(acl, report, "aclmdlAddDatasetBuffer", error);
        acl->destroy_buffer(buffer);
    }
    if (status != OPSTREAM_OK && memory) {
        acl->release(memory);
    }
    return status;
}

static int make_dataset(struct opstream_model *model, size_t count, size_t (*bytes_of)(void *, size_t), struct report *report,
                        void **ret_dataset) {
    const struct acl *acl = &model->acl;
    *ret_dataset = acl->create_dataset();
    if (!*ret_dataset) {
        return fail(acl, report, "aclmdlCreateDataset", 0);
    }
    for (size_t i = 0; i < count; i++) {
        int status = add_buffer(acl, *ret_dataset, bytes_of(model->description, i), report);
        if (status != OPSTREAM_OK) {
            return status;
        }
    }
    return OPSTREAM_OK;
}

/* A model that takes several batches is run with one of 1. */
static int choose_batch(struct opstream_model *model, struct report *report) {
    const struct acl *acl = &model->acl;
    size_t index;
    if (!acl->input_by_name || !acl->set_dynamic_batch || acl->input_by_name(model->description, DYNAMIC_INPUT, &index) != 0) {
        return OPSTREAM_OK;
    }
    int error = acl->set_dynamic_batch(model->id, model->inputs, index, 1);
    return error == 0 ? OPSTREAM_OK : fail(acl, report, "aclmdlSetDynamicBatchSize", error);
}

static int prepare(struct opstream_model *model, const char *path, struct report *report) {
    const struct acl *acl = &model->acl;
    int status = start(model, report);
    if (status == OPSTREAM_OK) {
        status = load(model, path, report);
    }
    if (status == OPSTREAM_OK) {
        status = make_dataset(model, acl->inputs(model->description), acl->input_bytes, report, &model->inputs);
    }
    if (status == OPSTREAM_OK) {
        status = make_dataset(model, acl->outputs(model->description), acl->output_bytes, report, &model->outputs);
    }
    return status == OPSTREAM_OK ? choose_batch(model, report) : status;
}

int opstream_model_open(const char *library_path, const char *path, uint32_t device, char *text, size_t text_bytes, int *ret_acl_error,
                        opstream_model **ret_model) {
    struct report report = {.text = text, .bytes = text_bytes};
    if (text_bytes > 0) {
        text[0] = '\0';
    }
    if (device > INT32_MAX) {
        return OPSTREAM_E_INVALID;
    }
    if (hosting) {
        return OPSTREAM_E_BUSY;
    }
    opstream_model *model = calloc(1, sizeof *model);
    if (!model) {
        return OPSTREAM_E_MEMORY;
    }
    hosting = true;
    model->device = (int32_t)device;
    int status = find_functions(library_path, &model->acl, &report);
    if (status == OPSTREAM_OK) {
        status = prepare(model, path, &report);
    }
    if (status != OPSTREAM_OK) {
        opstream_model_close(model);
        if (status == OPSTREAM_E_VENDOR) {
            *ret_acl_error = report.acl_error;
        }
        return status;
    }
    *ret_model = model;
    return OPSTREAM_OK;
}

uint32_t opstream_model_id(const opstream_model *model) {
    return model->id;
}

int opstream_model_execute(opstream_model *model, int *ret_acl_error) {
    int error = model->acl.execute(model->id, model->inputs, model->outputs);
    if (error != 0) {
        *ret_acl_error = error;
        return OPSTREAM_E_VENDOR;
    }
    return OPSTREAM_OK;
}

static void free_dataset(const struct acl *acl, void *dataset) {
    if (!dataset) {
        return;
    }
    for (size_t i = 0; i < acl->buffers(dataset); i++) {
        void *buffer = acl->buffer(dataset, i);
        void *memory = acl->buffer_memory(buffer);
        if (memory) {
            acl->release(memory);
        }
        acl->destroy_buffer(buffer);
    }
    acl->destroy_dataset(dataset);
}

void opstream_model_close(opstream_model *model) {
    if (!model) {
        return;
    }
    const struct acl *acl = &model->acl;
    free_dataset(acl, model->inputs);
    free_dataset(acl, model->outputs);
    if (model->description) {
        acl->destroy_description(model->description);
    }
    if (model->loaded) {
        acl->unload(model->id);
    }
    if (model->context) {
        acl->destroy_context(model->context);
    }
    if (model->device_set) {
        acl->reset_device(model->device);
    }
    if (model->initialised) {
        acl->finalize();
    }
    hosting = false;
    free(model);
}
