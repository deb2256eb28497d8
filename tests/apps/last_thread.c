/* A serving program whose main thread ends first: another one executes and cleans up, and the process ends with that one.
 *
 *   last_thread PATH */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "acl/acl.h"

static const char *path;

/* As servers do it: signals are waited for, not handled. */
static void *serve(void *main_thread) {
    uint32_t model;
    int number;
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    pthread_join(*(pthread_t *)main_thread, NULL);
    if (aclInit(NULL) != 0 || aclrtSetDevice(0) != 0 || aclmdlLoadFromFile(path, &model) != 0) {
        _exit(2);
    }
    puts("serving");
    fflush(stdout);
    sigwait(&end, &number);
    aclmdlDataset *inputs = aclmdlCreateDataset(), *outputs = aclmdlCreateDataset();
    if (aclmdlExecute(model, inputs, outputs) != 0 || aclmdlUnload(model) != 0 || aclFinalize() != 0) {
        _exit(2);
    }
    puts("done");
    return NULL;
}

int main(int argc, char **argv) {
    static pthread_t self;
    pthread_t thread;
    sigset_t all;
    if (argc != 2) {
        return 2;
    }
    path = argv[1];
    self = pthread_self();
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_create(&thread, NULL, serve, &self);
    pthread_exit(NULL);
}
