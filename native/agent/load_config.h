/* load_config.h: what an application has put into the handles of aclmdlLoadWithConfig, as the vendor tells nobody. Any thread; no lock, no
 * allocation: of more than 32 handles at a time the others have no name. */
#ifndef OPSTREAM_AGENT_LOAD_CONFIG_H
#define OPSTREAM_AGENT_LOAD_CONFIG_H

/* The name of what the handle loads, to a buffer of MODEL_NAME_BYTES. The thread that uses the handle. */
void load_config_name(const void *handle, char *ret_name);

#endif
