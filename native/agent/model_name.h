/* model_name.h: the label `model` of what has been loaded. Any thread, no allocation. `ret_name` has MODEL_NAME_BYTES. */
#ifndef OPSTREAM_AGENT_MODEL_NAME_H
#define OPSTREAM_AGENT_MODEL_NAME_H

#include <stddef.h>

#define MODEL_NAME_BYTES 256

/* The file's name without .om; where that says nothing (model.om, a number), the nearest parent folder that does. */
void model_name_of_path(const char *path, char *ret_name);

/* "model-" and 8 hex digits of the content's hash: the same after a restart. Of more than 32 MiB the first and the last 16 count. */
void model_name_of_memory(const void *model, size_t bytes, char *ret_name);

/* "NAME-INDEX", of a model in a bundle. */
void model_name_in_bundle(const char *bundle, size_t index, char *ret_name);

#endif
