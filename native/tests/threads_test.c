/* What the threads are like that come with a publisher, the vendor's included. */
#include <dirent.h>
#include <sched.h>
#include <signal.h>

#include "publishing.h"

static uint64_t blocked_signals(const char *task) {
    char path[300], line[256];
    uint64_t blocked = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "re");
    CHECK(file);
    while (!found && fgets(line, sizeof line, file)) {
        found = sscanf(line, "SigBlk: %" SCNx64, &blocked) == 1;
    }
    CHECK(found);
    fclose(file);
    return blocked;
}

static int processors(const char *task) {
    cpu_set_t allowed;
    CHECK(sched_getaffinity(atoi(task), sizeof allowed, &allowed) == 0);
    return CPU_COUNT(&allowed);
}

static bool thread_is(const char *task, const char *name) {
    char path[300], comm[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
    FILE *file = fopen(path, "re");
    CHECK(file && fgets(comm, sizeof comm, file));
    fclose(file);
    return strncmp(comm, name, strlen(name)) == 0;
}

/* In none of them does a handler of the application run, nor can a SIGPIPE kill from there; and the reader isn't bound to the processor
 * that the application's thread is bound to. */
static int test_threads(void) {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    for (int processor = 0; CPU_COUNT(&one) == 0; processor++) {
        if (CPU_ISSET(processor, &all)) {
            CPU_SET(processor, &one);
        }
    }
    app_start();
    uint32_t model = app_load(0);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    opstream_publisher *publisher = open_publisher();
    subscribe(publisher, model, 0, "model");
    unsigned readers = 0, vendors = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks);
    for (const struct dirent *task; (task = readdir(tasks));) {
        if (task->d_name[0] == '.' || atoi(task->d_name) == getpid()) {
            continue;
        }
        bool vendor = thread_is(task->d_name, "sim-"), reader = thread_is(task->d_name, "opstream-reader");
        uint64_t blocked = blocked_signals(task->d_name);
        CHECK(!(vendor || reader) || (blocked & 1u << (SIGPIPE - 1) && blocked & 1u << (SIGTERM - 1)));
        CHECK(!reader || processors(task->d_name) >= CPU_COUNT(&all));
        CHECK(!reader || sched_getscheduler(atoi(task->d_name)) == SCHED_OTHER);
        readers += reader;
        vendors += vendor;
    }
    closedir(tasks);
    CHECK_EQ_U64(readers, 1);
    CHECK_EQ_U64(vendors, 19);
    unsubscribe(publisher, model);
    opstream_publisher_close(publisher);
    return 0;
}

int main(void) {
    CHECK_EQ_INT(run(test_threads), 0);
    return 0;
}
