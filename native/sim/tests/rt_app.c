/* An application as the public samples are: initialise, load, describe, prepare datasets, execute, fetch, clean up. And their mistakes. */
#include <pthread.h>
#include <stdatomic.h>

#include "acl/acl.h"
#include "expect.h"

#define DYNAMIC "opstream-workload 1\ninput\tdata\t64\ninput\tascend_mbatch_shape_data\t16\noutput\tprob\t8\nop\t0\t1000\tT\tn\n"

struct network {
    uint32_t id;
    void *work;
    void *weights;
    aclmdlDesc *description;
    aclmdlDataset *input;
    aclmdlDataset *output;
};

static aclDataBuffer *add_buffer(aclmdlDataset *dataset, size_t size) {
    void *memory = NULL;
    EXPECT_EQUAL(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    aclDataBuffer *buffer = aclCreateDataBuffer(memory, size);
    EXPECT_EQUAL(aclmdlAddDatasetBuffer(dataset, buffer), ACL_SUCCESS);
    return buffer;
}

static void describe(struct network *network) {
    network->description = aclmdlCreateDesc();
    EXPECT_EQUAL(aclmdlGetDesc(network->description, network->id), ACL_SUCCESS);
    network->input = aclmdlCreateDataset();
    network->output = aclmdlCreateDataset();
    for (size_t i = 0; i < aclmdlGetNumInputs(network->description); i++) {
        add_buffer(network->input, aclmdlGetInputSizeByIndex(network->description, i));
    }
    for (size_t i = 0; i < aclmdlGetNumOutputs(network->description); i++) {
        add_buffer(network->output, aclmdlGetOutputSizeByIndex(network->description, i));
    }
}

static void load(struct network *network, const char *path) {
    size_t work_size;
    size_t weights_size;
    EXPECT_EQUAL(aclmdlQuerySize(path, &work_size, &weights_size), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtMalloc(&network->work, work_size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtMalloc(&network->weights, weights_size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlLoadFromFileWithMem(path, &network->id, network->work, work_size - 1, network->weights, weights_size),
                 ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclmdlLoadFromFileWithMem(path, &network->id, network->work, work_size, network->weights, weights_size), ACL_SUCCESS);
    describe(network);
}

static void free_buffers(aclmdlDataset *dataset) {
    for (size_t i = 0; i < aclmdlGetDatasetNumBuffers(dataset); i++) {
        aclDataBuffer *buffer = aclmdlGetDatasetBuffer(dataset, i);
        EXPECT_EQUAL(aclrtFree(aclGetDataBufferAddr(buffer)), ACL_SUCCESS);
        EXPECT_EQUAL(aclDestroyDataBuffer(buffer), ACL_SUCCESS);
    }
    EXPECT_EQUAL(aclmdlDestroyDataset(dataset), ACL_SUCCESS);
}

static void unload(struct network *network) {
    EXPECT_EQUAL(aclmdlUnload(network->id), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlDestroyDesc(network->description), ACL_SUCCESS);
    free_buffers(network->input);
    free_buffers(network->output);
    if (network->work) {
        EXPECT_EQUAL(aclrtFree(network->work), ACL_SUCCESS);
        EXPECT_EQUAL(aclrtFree(network->weights), ACL_SUCCESS);
    }
}

static void test_before_init(void) {
    uint32_t id;
    EXPECT_EQUAL(aclFinalize(), ACL_ERROR_UNINITIALIZE);
    EXPECT_EQUAL(aclrtSetDevice(0), ACL_ERROR_UNINITIALIZE);
    EXPECT_EQUAL(aclmdlLoadFromFile("resnet50", &id), ACL_ERROR_UNINITIALIZE);
    EXPECT_EQUAL(aclInit("/nonexistent/acl.json"), ACL_ERROR_INVALID_FILE);
}

static void test_devices(void) {
    uint32_t count = 0;
    int32_t device = -1;
    aclrtRunMode mode;
    aclrtContext first;
    aclrtContext second;
    aclrtContext current;
    void *memory;

    EXPECT_EQUAL(aclrtGetDeviceCount(&count), ACL_SUCCESS);
    EXPECT_EQUAL(count, 8);
    EXPECT_EQUAL(aclrtGetRunMode(&mode), ACL_SUCCESS);
    EXPECT_EQUAL(mode, ACL_HOST);
    EXPECT(strncmp(aclrtGetSocName(), "Ascend", 6) == 0);

    EXPECT_EQUAL(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQUAL(aclrtMalloc(&memory, 1, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQUAL(aclrtSetDevice(8), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_EQUAL(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_TEXT(aclGetRecentErrMsg(), "device -1 is not one of the 8 devices");

    EXPECT_EQUAL(aclrtSetDevice(3), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtGetCurrentContext(&first), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtCreateContext(&second, 5), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtGetDevice(&device), ACL_SUCCESS);
    EXPECT_EQUAL(device, 5);
    EXPECT_EQUAL(aclrtSetCurrentContext(first), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtGetDevice(&device), ACL_SUCCESS);
    EXPECT_EQUAL(device, 3);
    EXPECT_EQUAL(aclrtDestroyContext(second), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtSetCurrentContext(second), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclrtSetDevice(3), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtResetDevice(3), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtGetCurrentContext(&current), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtSetDevice(3), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtResetDeviceForce(3), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtGetCurrentContext(&current), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQUAL(aclrtResetDevice(3), ACL_ERROR_RT_CONTEXT_NULL);
}

static void test_memory(void) {
    void *device = NULL;
    void *host = NULL;
    aclrtStream stream;
    EXPECT_EQUAL(aclrtCreateStream(&stream), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtMalloc(&device, 0, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclrtMalloc(&device, 6, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtMallocHost(&host, 6), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtMemcpy(device, 6, "image", 6, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtMemcpy(device, 6, "larger", 7, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclrtMemcpyAsync(host, 6, device, 6, ACL_MEMCPY_DEVICE_TO_HOST, stream), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_TEXT((const char *)host, "image");
    EXPECT_EQUAL(aclrtDestroyStream(stream), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtFree(device), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclrtFreeHost(host), ACL_SUCCESS);
}

static void test_description(const struct network *network) {
    aclmdlIODims dims;
    size_t index = 9;
    aclmdlDesc *description = network->description;
    EXPECT_EQUAL(aclmdlGetNumInputs(description), 1);
    EXPECT_EQUAL(aclmdlGetNumOutputs(description), 1);
    EXPECT_EQUAL(aclmdlGetInputSizeByIndex(description, 1), 0);
    EXPECT_TEXT(aclmdlGetInputNameByIndex(description, 0), "input");
    EXPECT_TEXT(aclmdlGetOutputNameByIndex(description, 0), "output");
    EXPECT_EQUAL(aclmdlGetInputIndexByName(description, "input", &index), ACL_SUCCESS);
    EXPECT_EQUAL(index, 0);
    EXPECT_EQUAL(aclmdlGetInputIndexByName(description, ACL_DYNAMIC_TENSOR_NAME, &index), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclmdlGetInputDims(description, 0, &dims), ACL_SUCCESS);
    EXPECT(dims.dimCount == 4 && dims.dims[0] == 1 && dims.dims[1] == 3 && dims.dims[2] == 224 && dims.dims[3] == 224);
    EXPECT_EQUAL(aclmdlGetCurOutputDims(description, 0, &dims), ACL_SUCCESS);
    EXPECT(dims.dimCount == 2 && dims.dims[0] == 1 && dims.dims[1] == 1000);
    EXPECT_EQUAL(aclmdlGetOutputDims(description, 1, &dims), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclmdlGetInputFormat(description, 0), ACL_FORMAT_NCHW);
    EXPECT_EQUAL(aclmdlGetOutputFormat(description, 0), ACL_FORMAT_ND);
    EXPECT_EQUAL(aclmdlGetInputDataType(description, 0), ACL_FLOAT);
    EXPECT_EQUAL(aclmdlGetOutputDataType(description, 7), ACL_DT_UNDEFINED);
}

static void test_execution(struct network *network) {
    aclDataBuffer *image = aclmdlGetDatasetBuffer(network->input, 0);
    void *memory = aclGetDataBufferAddr(image);
    size_t size = aclGetDataBufferSizeV2(image);
    EXPECT_EQUAL(aclmdlExecute(network->id, network->input, network->output), ACL_SUCCESS);

    EXPECT_EQUAL(aclmdlExecute(network->id + 1000, network->input, network->output), ACL_ERROR_INVALID_MODEL_ID);
    EXPECT_EQUAL(aclmdlExecute(network->id, NULL, network->output), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclUpdateDataBuffer(image, memory, size - 1), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlExecute(network->id, network->input, network->output), ACL_ERROR_MODEL_INPUT_NOT_MATCH);
    EXPECT_TEXT(aclGetRecentErrMsg(), "input 0 (input) has a buffer of 602111 bytes, the model wants 602112");
    EXPECT_EQUAL(aclUpdateDataBuffer(image, memory, size), ACL_SUCCESS);
    aclDataBuffer *excess = add_buffer(network->output, 4);
    EXPECT_EQUAL(aclmdlExecute(network->id, network->input, network->output), ACL_ERROR_MODEL_OUTPUT_NOT_MATCH);
    EXPECT(aclmdlGetDatasetBuffer(network->output, 1) == excess);
    EXPECT(aclmdlGetDatasetBuffer(network->output, 2) == NULL);
}

static void test_dynamic(void) {
    struct network network = {0};
    size_t index = 0;
    size_t sizes[2];
    EXPECT_EQUAL(aclmdlQuerySizeFromMem(DYNAMIC, strlen(DYNAMIC), &sizes[0], &sizes[1]), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlLoadFromMemWithMem(DYNAMIC, strlen(DYNAMIC), &network.id, NULL, 0, NULL, 0), ACL_SUCCESS);
    describe(&network);
    EXPECT_EQUAL(aclmdlGetInputIndexByName(network.description, ACL_DYNAMIC_TENSOR_NAME, &index), ACL_SUCCESS);
    EXPECT_EQUAL(index, 1);
    EXPECT_EQUAL(aclmdlSetDynamicBatchSize(network.id, network.input, index, 8), ACL_SUCCESS);
    EXPECT_EQUAL(*(uint64_t *)aclGetDataBufferAddr(aclmdlGetDatasetBuffer(network.input, index)), 8);
    EXPECT_EQUAL(aclmdlSetDynamicHWSize(network.id, network.input, index, 416, 320), ACL_SUCCESS);
    EXPECT_EQUAL(((uint64_t *)aclGetDataBufferAddr(aclmdlGetDatasetBuffer(network.input, index)))[1], 320);
    EXPECT_EQUAL(aclmdlSetDynamicBatchSize(network.id, network.input, index, 0), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclmdlSetDynamicBatchSize(network.id, network.input, 0, 8), ACL_ERROR_MODEL_NOT_DYNAMIC);
    EXPECT_EQUAL(aclmdlExecute(network.id, network.input, network.output), ACL_SUCCESS);
    unload(&network);
}

static void test_other_loads(void) {
    const char *path = "resnet50";
    size_t load_type = ACL_MDL_LOAD_FROM_FILE;
    int32_t priority = 1;
    uint32_t id = 0;
    uint32_t bundle_id = 0;
    size_t models = 0;

    aclmdlConfigHandle *handle = aclmdlCreateConfigHandle();
    EXPECT_EQUAL(aclmdlLoadWithConfig(handle, &id), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclmdlSetConfigOpt(handle, ACL_MDL_LOAD_TYPE_SIZET, &load_type, sizeof load_type), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlLoadWithConfig(handle, &id), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclmdlSetConfigOpt(handle, ACL_MDL_PATH_PTR, &path, sizeof path), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlSetConfigOpt(handle, ACL_MDL_PRIORITY_INT32, &priority, sizeof priority), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlSetConfigOpt(handle, ACL_MDL_PRIORITY_INT32, &load_type, sizeof load_type), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclmdlSetConfigOpt(handle, ACL_MDL_INPUTQ_NUM_SIZET, &load_type, sizeof load_type), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclmdlLoadWithConfig(handle, &id), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlDestroyConfigHandle(handle), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlUnload(id), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlUnload(id), ACL_ERROR_INVALID_MODEL_ID);

    EXPECT_EQUAL(aclmdlBundleLoadFromFile("resnet50", &bundle_id), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlBundleGetModelNum(bundle_id, &models), ACL_SUCCESS);
    EXPECT_EQUAL(models, 1);
    EXPECT_EQUAL(aclmdlBundleGetModelId(bundle_id, 1, &id), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQUAL(aclmdlBundleGetModelId(bundle_id, 0, &id), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlUnload(bundle_id), ACL_ERROR_INVALID_MODEL_ID);
    EXPECT_EQUAL(aclmdlBundleUnload(bundle_id), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlUnload(id), ACL_ERROR_INVALID_MODEL_ID);
    EXPECT_EQUAL(aclmdlBundleGetModelNum(bundle_id, &models), ACL_ERROR_INVALID_MODEL_ID);
}

static atomic_bool is_over;

static void *process_reports(void *argument) {
    (void)argument;
    while (!atomic_load(&is_over)) {
        (void)aclrtProcessReport(1);
    }
    return NULL;
}

struct call {
    pthread_t thread;
    unsigned calls;
};

static void note_call(void *argument) {
    struct call *call = argument;
    call->thread = pthread_self();
    call->calls++;
}

static void test_async(struct network *network) {
    aclrtStream stream;
    pthread_t reporter;
    struct call call = {0};
    EXPECT_EQUAL(aclrtCreateStream(&stream), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtLaunchCallback(note_call, &call, ACL_CALLBACK_BLOCK, stream), ACL_ERROR_STREAM_NOT_SUBSCRIBE);
    EXPECT_EQUAL(aclrtProcessReport(0), ACL_ERROR_WAIT_CALLBACK_TIMEOUT);
    EXPECT_EQUAL(pthread_create(&reporter, NULL, process_reports, NULL), 0);
    EXPECT_EQUAL(aclrtSubscribeReport((uint64_t)reporter, stream), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtSubscribeReport((uint64_t)reporter, stream), ACL_ERROR_REPEAT_SUBSCRIBE);

    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQUAL(aclmdlExecuteAsync(network->id, network->input, network->output, stream), ACL_SUCCESS);
        EXPECT_EQUAL(aclrtLaunchCallback(note_call, &call, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
    }
    EXPECT_EQUAL(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_EQUAL(call.calls, 3);
    EXPECT(pthread_equal(call.thread, reporter));

    EXPECT_EQUAL(aclmdlExecuteAsync(network->id, network->input, network->output, NULL), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtSynchronizeStream(NULL), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtUnSubscribeReport((uint64_t)reporter, stream), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtUnSubscribeReport((uint64_t)reporter, stream), ACL_ERROR_THREAD_NOT_SUBSCRIBE);
    atomic_store(&is_over, true);
    EXPECT_EQUAL(pthread_join(reporter, NULL), 0);
    EXPECT_EQUAL(aclrtDestroyStream(stream), ACL_SUCCESS);
}

int main(void) {
    struct network network = {0};
    test_before_init();
    EXPECT_EQUAL(aclInit(NULL), ACL_SUCCESS);
    EXPECT_EQUAL(aclInit(NULL), ACL_ERROR_REPEAT_INITIALIZE);
    test_devices();

    EXPECT_EQUAL(aclrtSetDevice(0), ACL_SUCCESS);
    test_memory();
    load(&network, "resnet50");
    test_description(&network);
    test_async(&network);
    test_execution(&network);
    unload(&network);
    test_dynamic();
    test_other_loads();
    EXPECT_EQUAL(aclrtResetDevice(0), ACL_SUCCESS);
    EXPECT_EQUAL(aclFinalize(), ACL_SUCCESS);
    EXPECT_EQUAL(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
    return 0;
}
