/* exit_handler.c: __cxa_atexit, to know when a destructor is registered: the vendor builds its table of names, and registers what tears it
 * down, with the first record, before anybody can have read that. Ours must run first, so it is registered once more. Called by anybody at
 * any time, before our own library and a sanitizer have started too: it uses nothing that must be set up. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "departure.h"
#include "real.h"

#define EARLY 32

typedef int (*register_function)(void (*function)(void *), void *argument, void *dso);

/* Registered while the real function is being looked for, by what that calls. */
struct early {
    void (*function)(void *);
    void *argument;
};

static register_function _Atomic known;
static struct early early[EARLY];
static atomic_uint early_count;
static __thread bool looking __attribute__((tls_model("initial-exec")));

WRAPPER int __cxa_atexit(void (*function)(void *), void *argument, void *dso);

static void run_early(int status, void *context) {
    const struct early *registered = context;
    (void)status;
    registered->function(registered->argument);
}

static int register_early(void (*function)(void *), void *argument) {
    unsigned slot = atomic_fetch_add(&early_count, 1);
    if (slot >= EARLY) {
        return -1;
    }
    early[slot] = (struct early){function, argument};
    return on_exit(run_early, &early[slot]);
}

static register_function real(void) {
    register_function function = atomic_load(&known);
    if (!function) {
        looking = true;
        void *address = dlsym(RTLD_NEXT, "__cxa_atexit");
        looking = false;
        memcpy(&function, &address, sizeof function);
        atomic_store(&known, function);
    }
    return function;
}

int __cxa_atexit(void (*function)(void *), void *argument, void *dso) {
    register_function forward = looking ? NULL : real();
    if (!forward) {
        return register_early(function, argument);
    }
    int answer = forward(function, argument, dso);
    departure_others_registered();
    return answer;
}
