/* Loading a model with or without memory of the caller's. */
#ifndef OPSTREAM_SIM_LOAD_H
#define OPSTREAM_SIM_LOAD_H

#include "acl/acl.h"

/* NULL pointers: the library sees to it. */
struct load_memory {
    void *work;
    size_t work_size;
    void *weights;
    size_t weights_size;
};

aclError load_file(const char *path, struct load_memory memory, uint32_t *ret_id);
aclError load_memory(const void *model, size_t size, struct load_memory memory, uint32_t *ret_id);

#endif
