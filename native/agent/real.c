#include "real.h"

#include <errno.h>

#include "vendor.h"

void *_Atomic real_functions[REAL_COUNT];

static const char *const names[REAL_COUNT] = {
#define REAL_NAME(name, answer, arguments) #name,
    REAL_FUNCTIONS(REAL_NAME)
#undef REAL_NAME
};

void *real_look(enum real_function function) {
    int error = errno;
    void *address = vendor_loaded_function(names[function]);
    atomic_store_explicit(&real_functions[function], address, memory_order_release);
    errno = error;
    return address;
}
