/* real.h: the vendor's own functions. REAL(aclmdlUnload) is a pointer to the vendor's, as the application would have got it without us, or
 * NULL. Each is looked for once (vendor_loaded_function), again as long as it is missing. Any thread; no lock of ours. A wrapper whose real
 * function is missing answers REAL_MISSING. */
#ifndef OPSTREAM_AGENT_REAL_H
#define OPSTREAM_AGENT_REAL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define REAL_MISSING 200006

/* What is wrapped, and what is called besides: name, answer, arguments. Opaque types of the vendor's are void. */
#define REAL_FUNCTIONS(X)                                                                                                                  \
    X(aclInit, int, (const char *config))                                                                                                  \
    X(aclFinalize, int, (void))                                                                                                            \
    X(aclrtGetDevice, int, (int32_t *device))                                                                                              \
    X(aclmdlLoadFromFile, int, (const char *path, uint32_t *id))                                                                           \
    X(aclmdlLoadFromFileWithMem, int, (const char *, uint32_t *, void *, size_t, void *, size_t))                                          \
    X(aclmdlLoadFromFileWithQ, int, (const char *, uint32_t *, const uint32_t *, size_t, const uint32_t *, size_t))                        \
    X(aclmdlLoadFromMem, int, (const void *, size_t, uint32_t *))                                                                          \
    X(aclmdlLoadFromMemWithMem, int, (const void *, size_t, uint32_t *, void *, size_t, void *, size_t))                                   \
    X(aclmdlLoadFromMemWithQ, int, (const void *, size_t, uint32_t *, const uint32_t *, size_t, const uint32_t *, size_t))                 \
    X(aclmdlLoadWithConfig, int, (const void *handle, uint32_t *id))                                                                       \
    X(aclmdlSetConfigOpt, int, (void *handle, int attribute, const void *value, size_t bytes))                                             \
    X(aclmdlDestroyConfigHandle, int, (void *handle))                                                                                      \
    X(aclmdlUnload, int, (uint32_t id))                                                                                                    \
    X(aclmdlBundleLoadFromFile, int, (const char *path, uint32_t *bundle))                                                                 \
    X(aclmdlBundleLoadFromMem, int, (const void *, size_t, uint32_t *))                                                                    \
    X(aclmdlBundleUnload, int, (uint32_t bundle))                                                                                          \
    X(aclmdlBundleGetModelNum, int, (uint32_t bundle, size_t *number))                                                                     \
    X(aclmdlBundleGetModelId, int, (uint32_t bundle, size_t index, uint32_t *id))                                                          \
    X(aclprofModelSubscribe, int, (uint32_t id, const void *config))                                                                       \
    X(aclprofModelUnSubscribe, int, (uint32_t id))                                                                                         \
    X(aclprofInit, int, (const char *path, size_t length))                                                                                 \
    X(aclprofFinalize, int, (void))                                                                                                        \
    X(aclprofSetConfig, int, (int type, const char *config, size_t length))                                                                \
    X(aclprofStart, int, (const void *config))                                                                                             \
    X(aclprofStop, int, (const void *config))

enum real_function {
#define REAL_NUMBER(name, answer, arguments) REAL_##name,
    REAL_FUNCTIONS(REAL_NUMBER)
#undef REAL_NUMBER
        REAL_COUNT
};

#define REAL_TYPE(name, answer, arguments) typedef answer(*real_##name##_function) arguments;
REAL_FUNCTIONS(REAL_TYPE)
#undef REAL_TYPE

extern void *_Atomic real_functions[REAL_COUNT];

void *real_look(enum real_function function);

static inline void *real_find(enum real_function function) {
    void *address = atomic_load_explicit(&real_functions[function], memory_order_acquire);
    return address ? address : real_look(function);
}

#define REAL(name) ((real_##name##_function)real_find(REAL_##name))

/* Before the definition of a wrapper: seen by the application. */
#define WRAPPER __attribute__((visibility("default")))

#endif
