/* Runs a fuzzer's harness without a fuzzer: over the files of two folders, each as it is; those of the first one, the seeds, also cut short
 * at some places, and with each of their 32-bit words in turn replaced by some that are likely to hurt. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static const uint32_t hurtful[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x00010000};

/* In memory of exactly its length, so that a sanitizer sees what is read beyond. */
static void run(const uint8_t *bytes, size_t length) {
    uint8_t *exact = malloc(length ? length : 1);
    if (!exact) {
        abort();
    }
    memcpy(exact, bytes, length);
    LLVMFuzzerTestOneInput(exact, length);
    free(exact);
}

static void run_variants(uint8_t *bytes, size_t length) {
    for (size_t cut = 0; cut < length; cut += 1 + cut / 4) {
        run(bytes, cut);
    }
    for (size_t at = 0; at + sizeof(hurtful[0]) <= length; at += sizeof(hurtful[0])) {
        uint32_t word;
        memcpy(&word, bytes + at, sizeof(word));
        /* Words in long runs of zeros are each like the other. */
        if (!word && at % 256) {
            continue;
        }
        for (size_t i = 0; i < sizeof(hurtful) / sizeof(hurtful[0]); i++) {
            memcpy(bytes + at, &hurtful[i], sizeof(word));
            run(bytes, length);
        }
        memcpy(bytes + at, &word, sizeof(word));
    }
}

static int run_file(const char *folder, const char *name, bool seed) {
    static uint8_t bytes[1 << 20];
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    size_t length = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    run(bytes, length);
    if (seed) {
        run_variants(bytes, length);
    }
    return 0;
}

static int run_folder(const char *path, bool seeds) {
    int files = 0, failed = 0;
    DIR *folder = opendir(path);
    if (!folder) {
        perror(path);
        return 1;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        failed |= run_file(path, entry->d_name, seeds);
        files++;
    }
    closedir(folder);
    printf("%s: %d files\n", path, files);
    return failed || files == 0;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s SEEDS CORPUS\n", argv[0]);
        return 2;
    }
    int failed = run_folder(argv[1], true);
    return run_folder(argv[2], false) || failed;
}
