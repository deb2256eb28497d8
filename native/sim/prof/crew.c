#include "crew.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define THREADS 18u
#define STACK_BYTES ((size_t)256 << 10)

static pthread_t threads[THREADS];
static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool stop;

static void *wait_for_stop(void *unused) {
    pthread_mutex_lock(&lock);
    while (!stop) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

void crew_start(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    stop = false;
    while (count < THREADS && pthread_create(&threads[count], &small, wait_for_stop, NULL) == 0) {
        pthread_setname_np(threads[count++], "sim-crew");
    }
    pthread_attr_destroy(&small);
}

void crew_stop(void) {
    pthread_mutex_lock(&lock);
    stop = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    while (count > 0) {
        pthread_join(threads[--count], NULL);
    }
}
