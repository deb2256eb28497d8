/* A serving program in C that knows nothing of opstreamd: loads models in every way there is, executes them, and waits to be told to end.
 *
 *   loads {VARIANT PATH DEVICE EXECUTIONS}
 *
 * It prints "executed" when all executions are done, and ends with SIGTERM: then it unloads everything and exits with 0. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

#define MODELS_MAX 16

struct model {
    uint32_t id, bundle;
    void *content, *work, *weights;
    size_t bytes, work_bytes, weights_bytes;
    int32_t device;
};

static void check(aclError error, const char *call) {
    if (error != ACL_SUCCESS) {
        fprintf(stderr, "%s: aclError %d\n", call, error);
        exit(1);
    }
}

#define CALL(function, ...) check(function(__VA_ARGS__), #function)

static void read_file(const char *path, struct model *model) {
    FILE *file = fopen(path, "rb");
    model->content = malloc(1 << 20);
    model->bytes = file && model->content ? fread(model->content, 1, 1 << 20, file) : 0;
    if (!file || fclose(file) != 0 || model->bytes == 0) {
        fprintf(stderr, "%s: can't be read\n", path);
        exit(1);
    }
}

static void allocate(const char *path, struct model *model) {
    CALL(aclmdlQuerySize, path, &model->work_bytes, &model->weights_bytes);
    CALL(aclrtMalloc, &model->work, model->work_bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    CALL(aclrtMalloc, &model->weights, model->weights_bytes, ACL_MEM_MALLOC_HUGE_FIRST);
}

static void load_with_config(size_t type, const char *path, struct model *model) {
    aclmdlConfigHandle *handle = aclmdlCreateConfigHandle();
    CALL(aclmdlSetConfigOpt, handle, ACL_MDL_LOAD_TYPE_SIZET, &type, sizeof type);
    if (type == ACL_MDL_LOAD_FROM_FILE) {
        CALL(aclmdlSetConfigOpt, handle, ACL_MDL_PATH_PTR, &path, sizeof path);
    } else {
        read_file(path, model);
        CALL(aclmdlSetConfigOpt, handle, ACL_MDL_MEM_ADDR_PTR, &model->content, sizeof model->content);
        CALL(aclmdlSetConfigOpt, handle, ACL_MDL_MEM_SIZET, &model->bytes, sizeof model->bytes);
    }
    CALL(aclmdlLoadWithConfig, handle, &model->id);
    CALL(aclmdlDestroyConfigHandle, handle);
}

static void load(const char *variant, const char *path, struct model *model) {
    CALL(aclrtSetDevice, model->device);
    if (strcmp(variant, "file") == 0) {
        CALL(aclmdlLoadFromFile, path, &model->id);
    } else if (strcmp(variant, "file-mem") == 0) {
        allocate(path, model);
        CALL(aclmdlLoadFromFileWithMem, path, &model->id, model->work, model->work_bytes, model->weights, model->weights_bytes);
    } else if (strcmp(variant, "mem") == 0) {
        read_file(path, model);
        CALL(aclmdlLoadFromMem, model->content, model->bytes, &model->id);
    } else if (strcmp(variant, "mem-mem") == 0) {
        read_file(path, model);
        allocate(path, model);
        CALL(aclmdlLoadFromMemWithMem, model->content, model->bytes, &model->id, model->work, model->work_bytes, model->weights,
             model->weights_bytes);
    } else if (strcmp(variant, "config-file") == 0) {
        load_with_config(ACL_MDL_LOAD_FROM_FILE, path, model);
    } else if (strcmp(variant, "config-mem") == 0) {
        load_with_config(ACL_MDL_LOAD_FROM_MEM, path, model);
    } else if (strcmp(variant, "bundle") == 0) {
        CALL(aclmdlBundleLoadFromFile, path, &model->bundle);
        CALL(aclmdlBundleGetModelId, model->bundle, 0, &model->id);
    } else {
        fprintf(stderr, "%s: unknown variant\n", variant);
        exit(2);
    }
}

static void execute(const struct model *model, int times) {
    aclmdlDataset *inputs = aclmdlCreateDataset(), *outputs = aclmdlCreateDataset();
    CALL(aclrtSetDevice, model->device);
    for (int i = 0; i < times; i++) {
        CALL(aclmdlExecute, model->id, inputs, outputs);
    }
    aclmdlDestroyDataset(inputs);
    aclmdlDestroyDataset(outputs);
}

static void unload(struct model *model) {
    if (model->bundle) {
        CALL(aclmdlBundleUnload, model->bundle);
    } else {
        CALL(aclmdlUnload, model->id);
    }
    if (model->work) {
        CALL(aclrtFree, model->work);
        CALL(aclrtFree, model->weights);
    }
    free(model->content);
}

int main(int argc, char **argv) {
    struct model models[MODELS_MAX] = {{0}};
    int count = (argc - 1) / 4, signal_number;
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    CALL(aclInit, NULL);
    for (int i = 0; i < count; i++) {
        models[i].device = atoi(argv[4 * i + 3]);
        load(argv[4 * i + 1], argv[4 * i + 2], &models[i]);
    }
    for (int i = 0; i < count; i++) {
        execute(&models[i], atoi(argv[4 * i + 4]));
    }
    puts("executed");
    fflush(stdout);
    sigwait(&end, &signal_number);
    for (int i = 0; i < count; i++) {
        unload(&models[i]);
    }
    CALL(aclFinalize);
    return 0;
}
