#include "workload_copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void write_tensors(FILE *file, const char *kind, const struct workload_tensors *tensors) {
    for (size_t i = 0; i < tensors->count; i++) {
        fprintf(file, "%s\t%s\t%zu\n", kind, tensors->items[i].dims.name, tensors->items[i].bytes);
    }
}

static bool write_all(const struct workload *workload, const char *path) {
    FILE *file = fopen(path, "wxe");
    if (!file) {
        return false;
    }
    fputs("opstream-workload 1\n", file);
    write_tensors(file, "input", &workload->inputs);
    write_tensors(file, "output", &workload->outputs);
    for (size_t i = 0; i < workload->operator_count; i++) {
        const struct workload_operator *operator = &workload->operators[i];
        fprintf(file, "op\t%" PRIu64 "\t%" PRIu64 "\t%s\t%s\n", operator->start_ns, operator->duration_ns, operator->type, operator->name);
    }
    bool whole = ferror(file) == 0;
    return fclose(file) == 0 && whole;
}

bool workload_copy_make(const struct workload *workload, const char *name, struct workload_copy *ret_copy) {
    const char *temporary = getenv("TMPDIR");
    if (snprintf(ret_copy->folder, sizeof ret_copy->folder, "%s/opstream-sim-XXXXXX", temporary && *temporary ? temporary : "/tmp") >=
            (int)sizeof ret_copy->folder ||
        !mkdtemp(ret_copy->folder)) {
        return false;
    }
    if (snprintf(ret_copy->path, sizeof ret_copy->path, "%s/%s.om", ret_copy->folder, name) < (int)sizeof ret_copy->path &&
        write_all(workload, ret_copy->path)) {
        return true;
    }
    workload_copy_remove(ret_copy);
    return false;
}

void workload_copy_remove(const struct workload_copy *copy) {
    unlink(copy->path);
    rmdir(copy->folder);
}
