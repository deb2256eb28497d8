/* Datasets: the buffers given to one execution. */
#ifndef OPSTREAM_SIM_DATASET_H
#define OPSTREAM_SIM_DATASET_H

#include "acl/acl.h"
#include "workload.h"

/* `mismatch` unless the dataset has one buffer for each tensor, with memory and at least as large. `what` is "input" or "output". */
aclError dataset_check(const aclmdlDataset *dataset, const struct workload_tensors *tensors, const char *what, aclError mismatch);

#endif
