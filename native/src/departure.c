#include "departure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void (*leave)(void);
static void (*forked)(void);
static atomic_bool subscribed;
static atomic_bool settled;      /* the vendor has registered all that it registers */
static bool child_of_subscribed; /* written in the child while it has one thread */

static void on_fork(void) {
    child_of_subscribed |= atomic_load(&subscribed);
    atomic_store(&subscribed, false);
    forked();
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, on_fork);
}

static void at_exit(int exit_status, void *unused) {
    (void)unused;
    if (child_of_subscribed) {
        fflush(NULL);
        _exit(exit_status);
    }
    leave();
}

void departure_prepare(void (*leave_function)(void), void (*forked_function)(void)) {
    leave = leave_function;
    forked = forked_function;
    pthread_once(&once, watch_forks);
}

void departure_register(void) {
    on_exit(at_exit, NULL);
}

void departure_register_last(void) {
    departure_register();
    atomic_store(&settled, true);
}

void departure_others_registered(void) {
    if (atomic_load_explicit(&subscribed, memory_order_relaxed) && !atomic_load_explicit(&settled, memory_order_relaxed)) {
        departure_register();
    }
}

void departure_set_subscribed(bool now) {
    atomic_store(&subscribed, now);
}

bool departure_child_of_subscribed(void) {
    return child_of_subscribed;
}
