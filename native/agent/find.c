/* find.c: the agent of this process: the one that is preloaded, else the library loaded now, whose wrappers nobody meets then. Linked into
 * whoever calls it, not into the agent. */
#include "table.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "opstream.h"

static const struct opstream_agent_table *_Atomic found;

static const struct opstream_agent_table *find(const char *path) {
    const struct opstream_agent_table *table = dlsym(RTLD_DEFAULT, "opstream_agent_table_1");
    if (table == NULL) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        table = library != NULL ? dlsym(library, "opstream_agent_table_1") : NULL;
    }
    /* A preloaded library stays, but one of another release may know less. */
    return table != NULL && table->version == OPSTREAM_AGENT_TABLE_VERSION && table->bytes >= sizeof *table ? table : NULL;
}

int opstream_agent_load(const char *path) {
    if (atomic_load(&found) == NULL) {
        atomic_store(&found, find(path)); /* whoever does it first: each finds the same */
    }
    return atomic_load(&found) != NULL ? OPSTREAM_OK : OPSTREAM_E_LIBRARY;
}

int opstream_agent_attach(uint32_t model_id, uint32_t device, const char *name, int *ret_acl_error) {
    const struct opstream_agent_table *table = atomic_load(&found);
    return table != NULL ? table->attach(model_id, device, name, ret_acl_error) : OPSTREAM_E_LIBRARY;
}

int opstream_agent_detach(uint32_t model_id, int *ret_acl_error) {
    const struct opstream_agent_table *table = atomic_load(&found);
    return table != NULL ? table->detach(model_id, ret_acl_error) : OPSTREAM_E_LIBRARY;
}
