/* Loaded models. */
#ifndef OPSTREAM_SIM_MODEL_H
#define OPSTREAM_SIM_MODEL_H

#include "acl/acl.h"
#include "workload.h"

struct model {
    struct model *next;
    uint32_t id;        /* 1 and up, never given twice in a process; bundles count along */
    uint32_t bundle_id; /* 0: not from a bundle */
    uint32_t device;
    struct workload *workload;
    unsigned uses;
    bool is_unloading;
};

/* Loads the workload, which it takes over, onto the device of the thread's context. */
aclError model_load(struct workload *workload, bool is_bundle, struct model **ret_model);

/* The model may be used until model_release: unloading waits for that. Any thread. */
aclError model_use(uint32_t id, struct model **ret_model);
void model_release(struct model *model);

#endif
