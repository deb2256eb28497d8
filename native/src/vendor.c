#include "vendor.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASCENDCL "libascendcl.so"
#define MSPROFILER "libmsprofiler.so"

/* Pinned: the vendor's threads and exit handlers outlive any dlclose. */
#define PINNED (RTLD_LAZY | RTLD_NODELETE)

static const char *const usual_folders[] = {
    "/usr/local/Ascend/ascend-toolkit/latest/lib64",
    "/usr/local/Ascend/cann/lib64",
};

/* ---- A library that is loaded already ---- */

/* What the dynamic linker would give a caller after us. It may have come under any name, and a preloaded agent is passed over. */
static void *find_next(const char *function) {
    void *address = dlsym(RTLD_NEXT, function);
    Dl_info info;
    if (address == NULL || dladdr(address, &info) == 0) {
        return NULL;
    }
    return dlopen(info.dli_fname, PINNED | RTLD_NOLOAD);
}

struct search {
    const char *soname;
    char path[PATH_MAX];
};

static int match_loaded(struct dl_phdr_info *info, size_t info_bytes, void *context) {
    (void)info_bytes;
    struct search *search = context;
    const char *slash = strrchr(info->dlpi_name, '/');
    size_t length = strlen(search->soname);
    if (slash == NULL || strncmp(slash + 1, search->soname, length) != 0 || (slash[1 + length] != '\0' && slash[1 + length] != '.')) {
        return 0;
    }
    snprintf(search->path, sizeof search->path, "%s", info->dlpi_name);
    return 1;
}

/* For one whose own soname is another than its file's. */
static void *find_by_path(const char *soname) {
    struct search search = {.soname = soname};
    return dl_iterate_phdr(match_loaded, &search) != 0 ? dlopen(search.path, PINNED | RTLD_NOLOAD) : NULL;
}

static void *find_loaded(const char *soname, const char *function) {
    void *handle = find_next(function);
    if (handle == NULL) {
        handle = dlopen(soname, PINNED | RTLD_NOLOAD);
    }
    return handle != NULL ? handle : find_by_path(soname);
}

/* ---- A library that is not ---- */

static void *load_from(const char *folder, size_t folder_length, const char *soname) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%.*s/%s", (int)folder_length, folder, soname);
    return folder_length > 0 && length > 0 && (size_t)length < sizeof path ? dlopen(path, PINNED) : NULL;
}

static void *load_from_any(const char *folders, const char *soname) {
    void *handle = NULL;
    for (const char *folder = folders; handle == NULL && folder != NULL;) {
        const char *end = strchrnul(folder, ':');
        handle = load_from(folder, (size_t)(end - folder), soname);
        folder = *end == ':' ? end + 1 : NULL;
    }
    return handle;
}

static void *load_from_toolkit(const char *soname) {
    const char *home = getenv("ASCEND_HOME_PATH");
    char folder[PATH_MAX];
    void *handle = NULL;
    if (home != NULL && snprintf(folder, sizeof folder, "%s/lib64", home) < (int)sizeof folder) {
        handle = load_from(folder, strlen(folder), soname);
    }
    for (size_t i = 0; handle == NULL && i < sizeof usual_folders / sizeof *usual_folders; i++) {
        handle = load_from(usual_folders[i], strlen(usual_folders[i]), soname);
    }
    return handle;
}

static void *load(const char *library_path, const char *soname) {
    void *handle = load_from_any(library_path, soname);
    if (handle == NULL) {
        handle = dlopen(soname, PINNED);
    }
    return handle != NULL ? handle : load_from_toolkit(soname);
}

static void *load_beside(void *neighbour, const char *soname) {
    struct link_map *map = NULL;
    if (dlinfo(neighbour, RTLD_DI_LINKMAP, &map) != 0) {
        return NULL;
    }
    const char *slash = strrchr(map->l_name, '/');
    return slash != NULL ? load_from(map->l_name, (size_t)(slash - map->l_name), soname) : NULL;
}

static int not_found(const char *soname, const char *library_path, char *text, size_t text_bytes) {
    const char *home = getenv("ASCEND_HOME_PATH");
    snprintf(text, text_bytes,
             "%s was not found: it is not loaded, and neither in %s, nor where the dynamic linker looks, nor in %s%s%s, %s", soname,
             library_path != NULL && library_path[0] != '\0' ? library_path : "a configured folder (there is none)",
             home != NULL ? home : "", home != NULL ? "/lib64, " : "", usual_folders[0], usual_folders[1]);
    return OPSTREAM_E_LIBRARY;
}

int vendor_library_open(const char *library_path, char *text, size_t text_bytes, struct vendor_library *ret_library) {
    struct vendor_library library = {.ascendcl = find_loaded(ASCENDCL, "aclInit")};
    if (text_bytes > 0) {
        text[0] = '\0';
    }
    if (library.ascendcl == NULL) {
        library.ascendcl = load(library_path, ASCENDCL);
    }
    if (library.ascendcl == NULL) {
        return not_found(ASCENDCL, library_path, text, text_bytes);
    }
    library.msprofiler = find_loaded(MSPROFILER, "aclprofGetOpDescSize");
    if (library.msprofiler == NULL) {
        library.msprofiler = load_beside(library.ascendcl, MSPROFILER);
    }
    if (library.msprofiler == NULL) {
        library.msprofiler = load(library_path, MSPROFILER);
    }
    if (library.msprofiler == NULL) {
        return not_found(MSPROFILER, library_path, text, text_bytes);
    }
    *ret_library = library;
    return OPSTREAM_OK;
}

/* ---- Functions ---- */

struct function {
    const char *name;
    size_t offset;
};

static const struct function functions[] = {
    {"aclprofCreateSubscribeConfig", offsetof(struct vendor, create_subscribe_config)},
    {"aclprofDestroySubscribeConfig", offsetof(struct vendor, destroy_subscribe_config)},
    {"aclprofModelSubscribe", offsetof(struct vendor, model_subscribe)},
    {"aclprofModelUnSubscribe", offsetof(struct vendor, model_unsubscribe)},
    {"aclprofGetOpDescSize", offsetof(struct vendor, get_op_desc_size)},
    {"aclprofGetOpNum", offsetof(struct vendor, get_op_num)},
    {"aclprofGetOpType", offsetof(struct vendor, get_op_type)},
    {"aclprofGetOpName", offsetof(struct vendor, get_op_name)},
    {"aclprofGetOpStart", offsetof(struct vendor, get_op_start)},
    {"aclprofGetOpEnd", offsetof(struct vendor, get_op_end)},
    {"aclprofGetOpDuration", offsetof(struct vendor, get_op_duration)},
    {"aclprofGetModelId", offsetof(struct vendor, get_model_id)},
};

int vendor_load(const struct vendor_library *library, char *text, size_t text_bytes, struct vendor *ret_vendor) {
    struct vendor vendor;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(library->msprofiler, functions[i].name);
        if (address == NULL) {
            snprintf(text, text_bytes, "%s lacks %s", MSPROFILER, functions[i].name);
            return OPSTREAM_E_LIBRARY;
        }
        memcpy((char *)&vendor + functions[i].offset, &address, sizeof address);
    }
    *ret_vendor = vendor;
    return OPSTREAM_OK;
}

void *vendor_loaded_function(const char *name) {
    void *address = dlsym(RTLD_NEXT, name);
    if (address == NULL) {
        bool profiling = strncmp(name, "aclprof", strlen("aclprof")) == 0;
        void *handle = find_loaded(profiling ? MSPROFILER : ASCENDCL, name);
        address = handle != NULL ? dlsym(handle, name) : NULL;
    }
    return address;
}

int vendor_find(const char *library_path, struct vendor *ret_vendor) {
    struct vendor_library library;
    int status = vendor_library_open(library_path, NULL, 0, &library);
    return status == OPSTREAM_OK ? vendor_load(&library, NULL, 0, ret_vendor) : status;
}
