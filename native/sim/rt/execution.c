/* Executing a model: taking its operators' time, and telling the profiler of each. */
#include <string.h>

#include "clock.h"
#include "dataset.h"
#include "failure.h"
#include "model.h"
#include "process.h"
#include "stream.h"

/* Operators whose ends are closer are waited for together: a wait costs about as much. */
#define TOGETHER_NS UINT64_C(50000)

/* The profiler may be attached in the middle of an execution, so it is looked for each time. */
static void record(const struct model *model, const char *name, const char *type, uint64_t start_ns, uint64_t end_ns) {
    const struct sim_profiler *profiler = process_profiler();
    if (profiler) {
        profiler->record(model->device, model->id, name, type, start_ns, end_ns);
    }
}

/* The end of every execution is a record too. */
static void record_execution(const struct model *model, uint64_t start_ns, uint64_t end_ns) {
    record(model, "keypoint_op", "na", start_ns, end_ns);
}

static void execute_unthrottled(const struct model *model) {
    if (!process_profiler()) {
        return;
    }
    uint64_t first_start_ns = UINT64_MAX;
    uint64_t last_end_ns = 0;
    for (size_t i = 0; i < model->workload->operator_count; i++) {
        const struct workload_operator *operator = &model->workload->operators[i];
        uint64_t start_ns = sim_clock_ns();
        uint64_t end_ns = start_ns + operator->duration_ns;
        record(model, operator->name, operator->type, start_ns, end_ns);
        first_start_ns = start_ns < first_start_ns ? start_ns : first_start_ns;
        last_end_ns = end_ns > last_end_ns ? end_ns : last_end_ns;
    }
    record_execution(model, first_start_ns, last_end_ns);
}

static void execute_timed(const struct model *model) {
    const struct workload_operator *operators = model->workload->operators;
    size_t count = model->workload->operator_count;
    uint64_t begin_ns = sim_clock_ns();
    size_t done = 0;
    while (done < count) {
        uint64_t first_end_ns = operators[done].start_ns + operators[done].duration_ns;
        uint64_t last_end_ns = first_end_ns;
        size_t ready = done + 1;
        for (; ready < count; ready++) {
            uint64_t end_ns = operators[ready].start_ns + operators[ready].duration_ns;
            if (end_ns - first_end_ns > TOGETHER_NS) {
                break;
            }
            last_end_ns = end_ns;
        }
        clock_wait(begin_ns + last_end_ns);
        for (; done < ready; done++) {
            uint64_t start_ns = begin_ns + operators[done].start_ns;
            record(model, operators[done].name, operators[done].type, start_ns, start_ns + operators[done].duration_ns);
        }
    }
    record_execution(model, begin_ns, begin_ns + operators[count - 1].start_ns + operators[count - 1].duration_ns);
}

static void execute(const struct model *model) {
    if (sim_speed() == 0) {
        execute_unthrottled(model);
    } else {
        execute_timed(model);
    }
}

static aclError prepare(uint32_t model_id, const aclmdlDataset *input, const aclmdlDataset *output, struct model **ret_model) {
    struct model *model = NULL;
    aclError error = model_use(model_id, &model);
    if (error) {
        return error;
    }
    error = dataset_check(input, &model->workload->inputs, "input", ACL_ERROR_MODEL_INPUT_NOT_MATCH);
    error = error ? error : dataset_check(output, &model->workload->outputs, "output", ACL_ERROR_MODEL_OUTPUT_NOT_MATCH);
    if (error) {
        model_release(model);
        return error;
    }
    *ret_model = model;
    return ACL_SUCCESS;
}

aclError aclmdlExecute(uint32_t modelId, const aclmdlDataset *input, aclmdlDataset *output) {
    struct model *model = NULL;
    aclError error = prepare(modelId, input, output, &model);
    if (error) {
        return error;
    }
    execute(model);
    model_release(model);
    return ACL_SUCCESS;
}

static void do_execution(void *argument) {
    struct model *model = argument;
    execute(model);
    model_release(model);
}

aclError aclmdlExecuteAsync(uint32_t modelId, const aclmdlDataset *input, aclmdlDataset *output, aclrtStream handle) {
    struct stream *stream = NULL;
    struct model *model = NULL;
    aclError error = stream_of_handle(handle, &stream);
    error = error ? error : prepare(modelId, input, output, &model);
    if (error) {
        return error;
    }
    error = stream_add(stream, do_execution, model);
    if (error) {
        model_release(model);
    }
    return error;
}

/* Writes the values where the real runtime does: into the buffer of the input that models with dynamic shapes have for that. */
static aclError set_dynamic(uint32_t model_id, const aclmdlDataset *dataset, size_t index, const uint64_t *values, size_t count) {
    struct model *model = NULL;
    if (!dataset) {
        return fail(ACL_ERROR_INVALID_PARAM, "no dataset");
    }
    for (size_t i = 0; i < count; i++) {
        if (values[i] == 0) {
            return fail(ACL_ERROR_INVALID_PARAM, "a batch or size of 0");
        }
    }
    aclError error = model_use(model_id, &model);
    if (error) {
        return error;
    }
    const struct workload_tensors *inputs = &model->workload->inputs;
    const aclDataBuffer *buffer = aclmdlGetDatasetBuffer(dataset, index);
    if (index >= inputs->count || strcmp(inputs->items[index].dims.name, ACL_DYNAMIC_TENSOR_NAME) != 0) {
        error = fail(ACL_ERROR_MODEL_NOT_DYNAMIC, "input %zu of model %u is not \"%s\"", index, model_id, ACL_DYNAMIC_TENSOR_NAME);
    } else if (!aclGetDataBufferAddr(buffer) || aclGetDataBufferSizeV2(buffer) < count * sizeof *values) {
        error =
            fail(ACL_ERROR_INVALID_PARAM, "the dataset's buffer %zu is missing or smaller than %zu bytes", index, count * sizeof *values);
    } else {
        memcpy(aclGetDataBufferAddr(buffer), values, count * sizeof *values);
    }
    model_release(model);
    return error;
}

aclError aclmdlSetDynamicBatchSize(uint32_t modelId, aclmdlDataset *dataset, size_t index, uint64_t batchSize) {
    return set_dynamic(modelId, dataset, index, &batchSize, 1);
}

aclError aclmdlSetDynamicHWSize(uint32_t modelId, aclmdlDataset *dataset, size_t index, uint64_t height, uint64_t width) {
    const uint64_t size[] = {height, width};
    return set_dynamic(modelId, dataset, index, size, 2);
}
