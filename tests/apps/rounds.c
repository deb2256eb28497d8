/* A serving program that loads a model, executes it once and unloads it, round after round, while models on other devices stay.
 *
 *   rounds PATH ROUNDS STAYING
 *
 * After a tenth of the rounds, and after all, it prints how many descriptors, threads and kilobytes of resident memory it has. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

static aclmdlDataset *inputs, *outputs;

static void check(aclError error, const char *call) {
    if (error != ACL_SUCCESS) {
        fprintf(stderr, "%s: aclError %d\n", call, error);
        exit(1);
    }
}

#define CALL(function, ...) check(function(__VA_ARGS__), #function)

static long entries(const char *path) {
    long count = 0;
    DIR *folder = opendir(path);
    while (folder && readdir(folder)) {
        count++;
    }
    closedir(folder);
    return count;
}

static long resident_kb(void) {
    char line[256];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kb = atol(line + 6);
        }
    }
    fclose(file);
    return kb;
}

static void report(void) {
    printf("%ld %ld %ld\n", entries("/proc/self/fd"), entries("/proc/self/task"), resident_kb());
    fflush(stdout);
}

static uint32_t load(int device, const char *path) {
    uint32_t id;
    CALL(aclrtSetDevice, device);
    CALL(aclmdlLoadFromFile, path, &id);
    CALL(aclmdlExecute, id, inputs, outputs);
    return id;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        return 2;
    }
    uint32_t staying[8];
    int rounds = atoi(argv[2]), count = atoi(argv[3]);
    CALL(aclInit, NULL);
    inputs = aclmdlCreateDataset();
    outputs = aclmdlCreateDataset();
    for (int i = 0; i < count; i++) {
        staying[i] = load(1 + i, argv[1]);
    }
    for (int round = 1; round <= rounds; round++) {
        CALL(aclmdlUnload, load(0, argv[1]));
        if (round == rounds / 10 || round == rounds) {
            report();
        }
    }
    for (int i = 0; i < count; i++) {
        CALL(aclmdlUnload, staying[i]);
    }
    CALL(aclFinalize);
    return 0;
}
