#include "table.h"

#include "agent.h"

static int attach(uint32_t model_id, uint32_t device, const char *name, int *ret_acl_error) {
    agent_set_initialised(true); /* a loaded model says that aclInit has returned, even where it was called past our wrapper */
    opstream_publisher *publisher = agent_open();
    if (!publisher) {
        return OPSTREAM_E_STATE;
    }
    return agent_subscribe(publisher, model_id, device, name, ret_acl_error);
}

static int detach(uint32_t model_id, int *ret_acl_error) {
    opstream_publisher *publisher = agent_publisher();
    return publisher ? opstream_publisher_unsubscribe(publisher, model_id, AGENT_LEAVE_WAIT_NS, ret_acl_error) : OPSTREAM_E_STATE;
}

extern const struct opstream_agent_table opstream_agent_table_1;

__attribute__((visibility("default"))) const struct opstream_agent_table opstream_agent_table_1 = {
    .version = OPSTREAM_AGENT_TABLE_VERSION,
    .bytes = sizeof(struct opstream_agent_table),
    .attach = attach,
    .detach = detach,
};
