#include "records.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "sim.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct record *records;
static size_t count;
static size_t capacity;
static uint32_t last_unloaded;

static void keep(uint32_t device, uint32_t model_id, const char *name, const char *type, uint64_t start_ns, uint64_t end_ns) {
    pthread_mutex_lock(&lock);
    if (count == capacity) {
        capacity = capacity ? 2 * capacity : 1024;
        records = realloc(records, capacity * sizeof *records);
        EXPECT(records);
    }
    records[count++] = (struct record){device, model_id, strdup(name), strdup(type), start_ns, end_ns};
    pthread_mutex_unlock(&lock);
}

static void keep_unloaded(uint32_t model_id) {
    pthread_mutex_lock(&lock);
    last_unloaded = model_id;
    pthread_mutex_unlock(&lock);
}

static const struct sim_profiler profiler = {.record = keep, .model_unloaded = keep_unloaded};

void records_attach(void) {
    sim_attach_profiler(&profiler);
}

size_t records_count(void) {
    pthread_mutex_lock(&lock);
    size_t kept = count;
    pthread_mutex_unlock(&lock);
    return kept;
}

const struct record *records_at(size_t index) {
    EXPECT(index < records_count());
    return &records[index];
}

uint32_t records_last_unloaded(void) {
    pthread_mutex_lock(&lock);
    uint32_t id = last_unloaded;
    pthread_mutex_unlock(&lock);
    return id;
}

char *records_listing(void) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    EXPECT(stream && count > 0);
    uint64_t begin_ns = records[count - 1].start_ns;
    for (size_t i = 0; i + 1 < count; i++) {
        fprintf(stream, "%" PRIu64 " %" PRIu64 " %s %s\n", records[i].start_ns - begin_ns, records[i].end_ns - records[i].start_ns,
                records[i].type, records[i].name);
    }
    fprintf(stream, "%" PRIu64 " %s %s\n", records[count - 1].end_ns - begin_ns, records[count - 1].type, records[count - 1].name);
    fclose(stream);
    return text;
}

void records_clear(void) {
    for (size_t i = 0; i < count; i++) {
        free(records[i].name);
        free(records[i].type);
    }
    free(records);
    records = NULL;
    count = 0;
    capacity = 0;
}
