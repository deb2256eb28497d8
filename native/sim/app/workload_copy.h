/* workload_copy.h: a workload as a model file of a chosen name, as the name is what a model is known by. */
#ifndef OPSTREAM_SIM_WORKLOAD_COPY_H
#define OPSTREAM_SIM_WORKLOAD_COPY_H

#include <limits.h>
#include <stdbool.h>

#include "workload.h"

struct workload_copy {
    char folder[PATH_MAX];
    char path[PATH_MAX];
};

/* Writes FOLDER/NAME.om, in a folder of its own among temporary files. false: errno says why not, and nothing is left. */
bool workload_copy_make(const struct workload *workload, const char *name, struct workload_copy *ret_copy);
void workload_copy_remove(const struct workload_copy *copy);

#endif
