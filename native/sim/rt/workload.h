/* Workloads: what the simulator takes for a model file. A workload lists one execution's operators with their times. It is
 *   - a built-in one, by name (builtin.h), where there is no file of that name;
 *   - a text: first line "opstream-workload 1", then lines of fields separated by single tabs,
 *         input   NAME  BYTES
 *         output  NAME  BYTES
 *         op      START_NS  DURATION_NS  TYPE  NAME
 *     (empty lines and lines that start with # are skipped);
 *   - or the table of a real profile: op_summary*.csv or kernel_details.csv, which has no inputs and outputs.
 * Text and table are told apart by the first line. A malformed one answers ACL_ERROR_INVALID_FILE, with file, line and column (both from 1,
 * the column in bytes) in the failure's text.
 */
#ifndef OPSTREAM_SIM_WORKLOAD_H
#define OPSTREAM_SIM_WORKLOAD_H

#include "acl/acl.h"
#include "source.h"

struct workload_operator {
    char *name;
    char *type;
    uint64_t start_ns;    /* after the execution's begin, divided by the speed */
    uint64_t duration_ns; /* as listed, at any speed */
};

struct workload_tensor {
    aclmdlIODims dims; /* with the name */
    aclFormat format;
    aclDataType data_type;
    size_t bytes;
};

struct workload_tensors {
    struct workload_tensor *items;
    size_t count;
};

struct workload {
    struct workload_operator *operators; /* in the order of their ends; at least one */
    size_t operator_count;
    size_t operator_capacity;
    struct workload_tensors inputs;
    struct workload_tensors outputs;
    size_t weight_bytes;
    _Atomic unsigned users;
};

/* The workload is the caller's and shared: each workload_free takes one user away, the last one frees it. Any thread. */
aclError workload_from_file(const char *path, struct workload **ret_workload);
aclError workload_from_memory(const void *text, size_t size, struct workload **ret_workload);
struct workload *workload_share(struct workload *workload);
void workload_free(struct workload *workload);

/* Bytes of memory that an application which brings its own must bring. */
size_t workload_work_bytes(const struct workload *workload);
size_t workload_weight_bytes(const struct workload *workload);

/* For those who make one. An operator's name and type are malloc'ed and taken over, on failure too. */
aclError workload_create(struct workload **ret_workload);
aclError workload_add_operator(struct workload *workload, char *name, char *type, uint64_t start_ns, uint64_t duration_ns);
aclError workload_add_tensor(struct workload_tensors *tensors, const struct workload_tensor *tensor);

/* The two formats of files. They add to the workload. */
bool workload_is_text(const struct source *source);
aclError workload_parse_text(const struct source *source, struct workload *workload);
aclError workload_parse_csv(const struct source *source, struct workload *workload);

#endif
