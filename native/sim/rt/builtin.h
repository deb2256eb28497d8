/* Built-in workloads, generated from the architecture of well-known models. The same everywhere and every time. */
#ifndef OPSTREAM_SIM_BUILTIN_H
#define OPSTREAM_SIM_BUILTIN_H

#include "workload.h"

/* The workload is the caller's, its operators not scheduled yet. ACL_ERROR_INVALID_FILE when there is none of that name. */
aclError builtin_create(const char *name, struct workload **ret_workload);

/* A workload in the making. The first failure is kept and the rest then has no effect, so that architectures need not ask at each step. */
struct sketch {
    struct workload *workload;
    aclError error;
    uint64_t free_at_ns; /* when the last operator ends */
    bool is_after_cube;
};

/* Adds an operator of the matrix unit, from what it calculates and moves; or one of the vector unit, which memory bounds. */
void sketch_cube(struct sketch *sketch, const char *type, uint64_t flops, uint64_t bytes, const char *name, ...)
    __attribute__((format(printf, 5, 6)));
void sketch_vector(struct sketch *sketch, const char *type, uint64_t bytes, const char *name, ...) __attribute__((format(printf, 4, 5)));

/* [rows, inner] times [inner, columns], 16-bit. */
void sketch_matmul(struct sketch *sketch, const char *type, uint64_t rows, uint64_t inner, uint64_t columns, const char *name, ...)
    __attribute__((format(printf, 6, 7)));

/* `tensors` is one of the two lists of the sketch's workload; unused dimensions at the end are 0. */
void sketch_tensor(struct sketch *sketch, struct workload_tensors *tensors, const char *name, aclDataType data_type, aclFormat format,
                   const int64_t dims[4]);

void builtin_resnet50(struct sketch *sketch);
void builtin_bert_base(struct sketch *sketch);
void builtin_llm_decode(struct sketch *sketch);

#endif
