/* find.c: hands over to the agent that is preloaded into this process, where there is one. Linked into whoever calls it, not into the
 * agent. */
#include "table.h"

#include <dlfcn.h>

#include "opstream.h"

static const struct opstream_agent_table *find(void) {
    const struct opstream_agent_table *table = dlsym(RTLD_DEFAULT, "opstream_agent_table_1");
    /* A preloaded library stays, but one of another release may know less. */
    return table != NULL && table->version == OPSTREAM_AGENT_TABLE_VERSION && table->bytes >= sizeof *table ? table : NULL;
}

int opstream_agent_present(void) {
    return find() != NULL;
}

int opstream_agent_attach(uint32_t model_id, uint32_t device, const char *name, int *ret_acl_error) {
    const struct opstream_agent_table *table = find();
    return table != NULL ? table->attach(model_id, device, name, ret_acl_error) : OPSTREAM_E_STATE;
}

int opstream_agent_detach(uint32_t model_id, int *ret_acl_error) {
    const struct opstream_agent_table *table = find();
    return table != NULL ? table->detach(model_id, ret_acl_error) : OPSTREAM_E_STATE;
}
