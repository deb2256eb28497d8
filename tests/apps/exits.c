/* A serving program that calls exit() while another thread of it executes, as servers do that end in a signal's thread.
 *
 *   exits PATH MICROSECONDS STATUS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "acl/acl.h"

static void *execute(void *model) {
    aclrtSetDevice(0);
    aclmdlDataset *inputs = aclmdlCreateDataset(), *outputs = aclmdlCreateDataset();
    for (;;) {
        aclmdlExecute(*(uint32_t *)model, inputs, outputs);
    }
    return NULL;
}

int main(int argc, char **argv) {
    static uint32_t model;
    pthread_t thread;
    if (argc != 4 || aclInit(NULL) != 0 || aclrtSetDevice(0) != 0 || aclmdlLoadFromFile(argv[1], &model) != 0) {
        return 2;
    }
    pthread_create(&thread, NULL, execute, &model);
    usleep((useconds_t)atoi(argv[2]));
    puts("ending");
    exit(atoi(argv[3]));
}
