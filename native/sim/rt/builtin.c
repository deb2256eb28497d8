#include "builtin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"

/* What a middling NPU reaches in practice. */
#define CUBE_FLOPS_PER_NS 126000u
#define MEMORY_BYTES_PER_NS 560u
#define LAUNCH_NS 1240u

static const struct {
    const char *name;
    void (*draw)(struct sketch *sketch);
} builtins[] = {
    {"resnet50", builtin_resnet50},
    {"bert-base", builtin_bert_base},
    {"llm-decode", builtin_llm_decode},
};

aclError builtin_create(const char *name, struct workload **ret_workload) {
    struct sketch sketch = {0};
    size_t i = 0;
    while (i < sizeof builtins / sizeof builtins[0] && strcmp(builtins[i].name, name) != 0) {
        i++;
    }
    if (i == sizeof builtins / sizeof builtins[0]) {
        return fail(ACL_ERROR_INVALID_FILE, "%s: no such file, and no built-in workload either (resnet50, bert-base, llm-decode)", name);
    }
    aclError error = workload_create(&sketch.workload);
    if (error) {
        return error;
    }
    builtins[i].draw(&sketch);
    if (sketch.error) {
        workload_free(sketch.workload);
        return sketch.error;
    }
    *ret_workload = sketch.workload;
    return ACL_SUCCESS;
}

/* Operators follow each other with small gaps; a vector operator's begin overlaps the end of a matrix operator before it. */
static void add(struct sketch *sketch, bool is_cube, const char *type, uint64_t work_ns, const char *name, va_list arguments) {
    char *full_name = NULL;
    size_t position = sketch->workload->operator_count;
    uint64_t duration_ns = LAUNCH_NS + work_ns;
    uint64_t start_ns = sketch->free_at_ns + 240 + 20 * (position * 7 % 23);

    if (sketch->error) {
        return;
    }
    if (sketch->is_after_cube && !is_cube) {
        start_ns = sketch->free_at_ns - LAUNCH_NS / 2;
    }
    if (vasprintf(&full_name, name, arguments) < 0) {
        full_name = NULL;
    }
    sketch->error = workload_add_operator(sketch->workload, full_name, strdup(type), start_ns, duration_ns);
    sketch->free_at_ns = start_ns + duration_ns;
    sketch->is_after_cube = is_cube;
}

static uint64_t cube_ns(uint64_t flops, uint64_t bytes) {
    uint64_t calculating_ns = flops / CUBE_FLOPS_PER_NS;
    uint64_t moving_ns = bytes / MEMORY_BYTES_PER_NS;
    return calculating_ns > moving_ns ? calculating_ns : moving_ns;
}

void sketch_cube(struct sketch *sketch, const char *type, uint64_t flops, uint64_t bytes, const char *name, ...) {
    va_list arguments;
    va_start(arguments, name);
    add(sketch, true, type, cube_ns(flops, bytes), name, arguments);
    va_end(arguments);
}

void sketch_vector(struct sketch *sketch, const char *type, uint64_t bytes, const char *name, ...) {
    va_list arguments;
    va_start(arguments, name);
    add(sketch, false, type, bytes / MEMORY_BYTES_PER_NS, name, arguments);
    va_end(arguments);
}

void sketch_matmul(struct sketch *sketch, const char *type, uint64_t rows, uint64_t inner, uint64_t columns, const char *name, ...) {
    va_list arguments;
    va_start(arguments, name);
    add(sketch, true, type, cube_ns(2 * rows * inner * columns, 2 * (rows * inner + inner * columns + rows * columns)), name, arguments);
    va_end(arguments);
}

void sketch_tensor(struct sketch *sketch, struct workload_tensors *tensors, const char *name, aclDataType data_type, aclFormat format,
                   const int64_t dims[4]) {
    struct workload_tensor tensor = {.format = format, .data_type = data_type, .bytes = aclDataTypeSize(data_type)};
    snprintf(tensor.dims.name, sizeof tensor.dims.name, "%s", name);
    for (size_t i = 0; i < 4 && dims[i] > 0; i++) {
        tensor.dims.dims[tensor.dims.dimCount++] = dims[i];
        tensor.bytes *= (size_t)dims[i];
    }
    if (!sketch->error) {
        sketch->error = workload_add_tensor(tensors, &tensor);
    }
}
