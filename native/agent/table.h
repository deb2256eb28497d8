/* table.h: what a preloaded agent offers to others in its process, such as Python's binding: found as opstream_agent_table_1 by
 * dlsym(RTLD_DEFAULT). Functions return an enum opstream_status; any thread. */
#ifndef OPSTREAM_AGENT_TABLE_H
#define OPSTREAM_AGENT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define OPSTREAM_AGENT_TABLE_VERSION 1

struct opstream_agent_table {
    uint32_t version; /* OPSTREAM_AGENT_TABLE_VERSION */
    uint32_t bytes;   /* of this structure: later ones only grow */
    /* Subscribes a loaded model under `name` (at most 255 bytes); one that the agent has subscribed already gets that name. Waits 500 ms at
     * most, then OPSTREAM_E_BUSY: it will be done later. OPSTREAM_E_STATE: the agent is disabled. Not before aclInit has returned. */
    int (*attach)(uint32_t model_id, uint32_t device, const char *name, int *ret_acl_error);
    /* Waits 2 s at most. OPSTREAM_E_STATE: not subscribed. */
    int (*detach)(uint32_t model_id, int *ret_acl_error);
};

#endif
