/* The module `acl` as pyACL has it, as far as loads.py needs it: an extension that links AscendCL, which Python loads with RTLD_LOCAL. Where
 * something is made, a function answers (it, aclError), else the aclError alone. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "acl/acl.h"

static PyObject *code(aclError error) {
    return PyLong_FromLong(error);
}

static PyObject *made(unsigned long long what, aclError error) {
    return Py_BuildValue("Ki", what, error);
}

#define FUNCTION(name) static PyObject *name(PyObject *module, PyObject *arguments)
#define PARSE(format, ...)                                                                                                                 \
    (void)module;                                                                                                                          \
    if (!PyArg_ParseTuple(arguments, format, __VA_ARGS__)) {                                                                               \
        return NULL;                                                                                                                       \
    }

FUNCTION(init) {
    (void)module, (void)arguments;
    return code(aclInit(NULL));
}

FUNCTION(finalize) {
    (void)module, (void)arguments;
    return code(aclFinalize());
}

FUNCTION(set_device) {
    int device;
    PARSE("i", &device)
    return code(aclrtSetDevice(device));
}

FUNCTION(device_malloc) {
    Py_ssize_t bytes;
    void *address = NULL;
    PARSE("n", &bytes)
    aclError error = aclrtMalloc(&address, (size_t)bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    return made((uintptr_t)address, error);
}

FUNCTION(query_size) {
    const char *path;
    size_t work = 0, weights = 0;
    PARSE("s", &path)
    aclError error = aclmdlQuerySize(path, &work, &weights);
    return Py_BuildValue("nni", (Py_ssize_t)work, (Py_ssize_t)weights, error);
}

FUNCTION(load_from_file) {
    const char *path;
    uint32_t id = 0;
    PARSE("s", &path)
    aclError error = aclmdlLoadFromFile(path, &id);
    return made(id, error);
}

FUNCTION(load_from_file_with_mem) {
    const char *path;
    unsigned long long work, weights;
    Py_ssize_t work_bytes, weights_bytes;
    uint32_t id = 0;
    PARSE("sKnKn", &path, &work, &work_bytes, &weights, &weights_bytes)
    aclError error = aclmdlLoadFromFileWithMem(path, &id, (void *)(uintptr_t)work, (size_t)work_bytes, (void *)(uintptr_t)weights,
                                               (size_t)weights_bytes);
    return made(id, error);
}

FUNCTION(load_from_mem) {
    const char *content;
    Py_ssize_t bytes;
    uint32_t id = 0;
    PARSE("y#", &content, &bytes)
    aclError error = aclmdlLoadFromMem(content, (size_t)bytes, &id);
    return made(id, error);
}

FUNCTION(load_from_mem_with_mem) {
    const char *content;
    unsigned long long work, weights;
    Py_ssize_t bytes, work_bytes, weights_bytes;
    uint32_t id = 0;
    PARSE("y#KnKn", &content, &bytes, &work, &work_bytes, &weights, &weights_bytes)
    aclError error = aclmdlLoadFromMemWithMem(content, (size_t)bytes, &id, (void *)(uintptr_t)work, (size_t)work_bytes,
                                              (void *)(uintptr_t)weights, (size_t)weights_bytes);
    return made(id, error);
}

static aclError load_with(size_t type, aclmdlConfigAttr what, const void *value, size_t bytes, uint32_t *ret_id) {
    aclmdlConfigHandle *handle = aclmdlCreateConfigHandle();
    aclError error = aclmdlSetConfigOpt(handle, ACL_MDL_LOAD_TYPE_SIZET, &type, sizeof type);
    error = error ? error : aclmdlSetConfigOpt(handle, what, &value, sizeof value);
    error = error || !bytes ? error : aclmdlSetConfigOpt(handle, ACL_MDL_MEM_SIZET, &bytes, sizeof bytes);
    error = error ? error : aclmdlLoadWithConfig(handle, ret_id);
    aclmdlDestroyConfigHandle(handle);
    return error;
}

FUNCTION(load_with_config_file) {
    const char *path;
    uint32_t id = 0;
    PARSE("s", &path)
    aclError error = load_with(ACL_MDL_LOAD_FROM_FILE, ACL_MDL_PATH_PTR, path, 0, &id);
    return made(id, error);
}

FUNCTION(load_with_config_mem) {
    const char *content;
    Py_ssize_t bytes;
    uint32_t id = 0;
    PARSE("y#", &content, &bytes)
    aclError error = load_with(ACL_MDL_LOAD_FROM_MEM, ACL_MDL_MEM_ADDR_PTR, content, (size_t)bytes, &id);
    return made(id, error);
}

FUNCTION(unload) {
    unsigned id;
    PARSE("I", &id)
    return code(aclmdlUnload(id));
}

FUNCTION(bundle_load_from_file) {
    const char *path;
    uint32_t bundle = 0;
    PARSE("s", &path)
    aclError error = aclmdlBundleLoadFromFile(path, &bundle);
    return made(bundle, error);
}

FUNCTION(bundle_get_model_id) {
    unsigned bundle;
    uint32_t id = 0;
    PARSE("I", &bundle)
    aclError error = aclmdlBundleGetModelId(bundle, 0, &id);
    return made(id, error);
}

FUNCTION(bundle_unload) {
    unsigned bundle;
    PARSE("I", &bundle)
    return code(aclmdlBundleUnload(bundle));
}

/* pyACL lets other threads run meanwhile. */
FUNCTION(execute) {
    unsigned id;
    PARSE("I", &id)
    aclmdlDataset *inputs = aclmdlCreateDataset(), *outputs = aclmdlCreateDataset();
    aclError error;
    Py_BEGIN_ALLOW_THREADS error = aclmdlExecute(id, inputs, outputs);
    Py_END_ALLOW_THREADS aclmdlDestroyDataset(inputs);
    aclmdlDestroyDataset(outputs);
    return code(error);
}

#define ENTRY(name) {#name, name, METH_VARARGS, NULL}
static PyMethodDef functions[] = {
    ENTRY(init),
    ENTRY(finalize),
    ENTRY(set_device),
    ENTRY(device_malloc),
    ENTRY(query_size),
    ENTRY(load_from_file),
    ENTRY(load_from_file_with_mem),
    ENTRY(load_from_mem),
    ENTRY(load_from_mem_with_mem),
    ENTRY(load_with_config_file),
    ENTRY(load_with_config_mem),
    ENTRY(unload),
    ENTRY(bundle_load_from_file),
    ENTRY(bundle_get_model_id),
    ENTRY(bundle_unload),
    ENTRY(execute),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "acl", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_acl(void) {
    return PyModule_Create(&definition);
}
