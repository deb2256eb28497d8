#include "workload.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "builtin.h"
#include "failure.h"
#include "sim.h"

/* Eleven days. At the lowest speed it still is far from overflowing. */
#define LONGEST_EXECUTION_NS UINT64_C(1000000000000000)

aclError workload_create(struct workload **ret_workload) {
    struct workload *workload = calloc(1, sizeof *workload);
    if (!workload) {
        return fail(ACL_ERROR_BAD_ALLOC, "no memory for a workload");
    }
    atomic_init(&workload->users, 1);
    *ret_workload = workload;
    return ACL_SUCCESS;
}

struct workload *workload_share(struct workload *workload) {
    atomic_fetch_add(&workload->users, 1);
    return workload;
}

void workload_free(struct workload *workload) {
    if (!workload || atomic_fetch_sub(&workload->users, 1) > 1) {
        return;
    }
    for (size_t i = 0; i < workload->operator_count; i++) {
        free(workload->operators[i].name);
        free(workload->operators[i].type);
    }
    free(workload->operators);
    free(workload->inputs.items);
    free(workload->outputs.items);
    free(workload);
}

aclError workload_add_operator(struct workload *workload, char *name, char *type, uint64_t start_ns, uint64_t duration_ns) {
    if (!name || !type) {
        goto no_memory;
    }
    if (workload->operator_count == workload->operator_capacity) {
        size_t capacity = workload->operator_capacity ? 2 * workload->operator_capacity : 256;
        struct workload_operator *operators = realloc(workload->operators, capacity * sizeof *operators);
        if (!operators) {
            goto no_memory;
        }
        workload->operators = operators;
        workload->operator_capacity = capacity;
    }
    workload->operators[workload->operator_count++] =
        (struct workload_operator){.name = name, .type = type, .start_ns = start_ns, .duration_ns = duration_ns};
    return ACL_SUCCESS;

no_memory:
    free(name);
    free(type);
    return fail(ACL_ERROR_BAD_ALLOC, "no memory for an operator");
}

aclError workload_add_tensor(struct workload_tensors *tensors, const struct workload_tensor *tensor) {
    struct workload_tensor *items = realloc(tensors->items, (tensors->count + 1) * sizeof *items);
    if (!items) {
        return fail(ACL_ERROR_BAD_ALLOC, "no memory for an input or output");
    }
    items[tensors->count++] = *tensor;
    tensors->items = items;
    return ACL_SUCCESS;
}

/* By end. Equal ends need an order too: the same workload must give the same records everywhere. */
static int compare(const void *left, const void *right) {
    const struct workload_operator *a = left;
    const struct workload_operator *b = right;
    uint64_t a_end_ns = a->start_ns + a->duration_ns;
    uint64_t b_end_ns = b->start_ns + b->duration_ns;
    if (a_end_ns != b_end_ns) {
        return a_end_ns < b_end_ns ? -1 : 1;
    }
    if (a->start_ns != b->start_ns) {
        return a->start_ns < b->start_ns ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

/* Makes the operators' times the ones of an execution: from its begin, at the speed, in the order of their ends. */
static aclError schedule(struct workload *workload, const char *name) {
    uint64_t begin_ns = UINT64_MAX;
    double speed = sim_speed();

    if (workload->operator_count == 0) {
        return fail(ACL_ERROR_INVALID_FILE, "%s: has no operators", name);
    }
    for (size_t i = 0; i < workload->operator_count; i++) {
        if (workload->operators[i].start_ns < begin_ns) {
            begin_ns = workload->operators[i].start_ns;
        }
    }
    for (size_t i = 0; i < workload->operator_count; i++) {
        struct workload_operator *operator = &workload->operators[i];
        operator->start_ns -= begin_ns;
        if (operator->start_ns > LONGEST_EXECUTION_NS || operator->duration_ns > LONGEST_EXECUTION_NS) {
            return fail(ACL_ERROR_INVALID_FILE, "%s: operator \"%.200s\" makes an execution longer than 10^15 ns", name, operator->name);
        }
        if (speed != 1 && speed != 0) {
            operator->start_ns = (uint64_t)((double)operator->start_ns / speed);
        }
    }
    qsort(workload->operators, workload->operator_count, sizeof *workload->operators, compare);
    return ACL_SUCCESS;
}

static aclError parse(const struct source *source, struct workload **ret_workload) {
    struct workload *workload = NULL;
    aclError error = workload_create(&workload);
    if (error) {
        return error;
    }
    const char *nul = memchr(source->text, '\0', (size_t)(source->end - source->text));
    if (source->text == source->end) {
        error = fail(ACL_ERROR_INVALID_FILE, "%s: is empty", source->name);
    } else if (nul) {
        error = source_fail(source, nul, "a NUL byte");
    } else if (workload_is_text(source)) {
        error = workload_parse_text(source, workload);
    } else {
        error = workload_parse_csv(source, workload);
    }
    if (!error) {
        error = schedule(workload, source->name);
    }
    if (error) {
        workload_free(workload);
        return error;
    }
    *ret_workload = workload;
    return ACL_SUCCESS;
}

static aclError from_builtin(const char *name, struct workload **ret_workload) {
    struct workload *workload = NULL;
    aclError error = builtin_create(name, &workload);
    if (error) {
        return error;
    }
    error = schedule(workload, name);
    if (error) {
        workload_free(workload);
        return error;
    }
    *ret_workload = workload;
    return ACL_SUCCESS;
}

aclError workload_from_file(const char *path, struct workload **ret_workload) {
    struct source source = {0};
    if (!strchr(path, '/') && access(path, F_OK) != 0 && errno == ENOENT) {
        return from_builtin(path, ret_workload);
    }
    aclError error = source_open(path, &source);
    if (error) {
        return error;
    }
    error = parse(&source, ret_workload);
    source_close(&source);
    return error;
}

aclError workload_from_memory(const void *text, size_t size, struct workload **ret_workload) {
    struct source source = source_of_memory("model in memory", text, size);
    return parse(&source, ret_workload);
}

static size_t tensors_bytes(const struct workload_tensors *tensors) {
    size_t bytes = 0;
    for (size_t i = 0; i < tensors->count; i++) {
        bytes += tensors->items[i].bytes;
    }
    return bytes;
}

size_t workload_work_bytes(const struct workload *workload) {
    return (1u << 20) + tensors_bytes(&workload->inputs) + tensors_bytes(&workload->outputs);
}

size_t workload_weight_bytes(const struct workload *workload) {
    return workload->weight_bytes ? workload->weight_bytes : 512; /* never 0: applications allocate it unasked */
}
