/* vendor.h: the vendor's functions, looked up at run time: nothing is linked, and any of them may be missing. */
#ifndef OPSTREAM_VENDOR_H
#define OPSTREAM_VENDOR_H

#include <stddef.h>
#include <stdint.h>

#include "opstream.h"

struct vendor {
    /* subscription */
    void *(*create_subscribe_config)(int8_t time_info_switch, int aicore_metrics, void *fd);
    int (*destroy_subscribe_config)(const void *config);
    int (*model_subscribe)(uint32_t model_id, const void *config);
    int (*model_unsubscribe)(uint32_t model_id);
    /* records */
    int (*get_op_desc_size)(size_t *size);
    int (*get_op_num)(const void *info, size_t length, uint32_t *number);
    int (*get_op_type)(const void *info, size_t length, uint32_t index, char *text, size_t text_length);
    int (*get_op_name)(const void *info, size_t length, uint32_t index, char *text, size_t text_length);
    uint64_t (*get_op_start)(const void *info, size_t length, uint32_t index);
    uint64_t (*get_op_end)(const void *info, size_t length, uint32_t index);
    uint64_t (*get_op_duration)(const void *info, size_t length, uint32_t index);
    size_t (*get_model_id)(const void *info, size_t length, uint32_t index);
};

/* The libraries, pinned (RTLD_NODELETE). One that is loaded is found by what RTLD_NEXT gives, else by soname (RTLD_NOLOAD), else by its
 * path (dl_iterate_phdr). One that isn't is searched in `library_path` (folders, ':' between; NULL = none), then by soname as the dynamic
 * linker finds it (LD_LIBRARY_PATH), then in the toolkit's usual folders; libmsprofiler.so first of all beside libascendcl.so. */
struct vendor_library {
    void *ascendcl; /* dlopen handles, never closed */
    void *msprofiler;
};

/* OPSTREAM_E_LIBRARY: `text` (always NUL-terminated when text_bytes > 0) says which was not found and where it was looked for. Any
 * thread. */
int vendor_library_open(const char *library_path, char *text, size_t text_bytes, struct vendor_library *ret_library);

/* Fills the table; OPSTREAM_E_LIBRARY when a function that reading needs is missing, `text` names it. */
int vendor_load(const struct vendor_library *library, char *text, size_t text_bytes, struct vendor *ret_vendor);

/* A function of the vendor's by its name, as whoever comes after the calling library would get it; NULL when its library isn't loaded or
 * lacks it. Loads nothing. Any thread. */
void *vendor_loaded_function(const char *name);

/* Both, without words. */
int vendor_find(const char *library_path, struct vendor *ret_vendor);

#endif
