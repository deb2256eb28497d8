/* steady RATE SECONDS: a publisher under a steady stream of RATE records/s of one device for SECONDS, in real time; one line of JSON.
 * RATE 0: one execution, then nothing, for the cost of an idle publisher. Delay is measured from outside: an operator's end as the workload
 * fixes it, against the moment at which another thread sees it counted in the segment (an upper bound: the execution begins a little after
 * the clock was read). */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "opstream.h"
#include "stream.h"

#define EXECUTION_NS UINT64_C(1000000000)
#define SAMPLE_NS 200000u
#define SAMPLES_MAX (1u << 20)

static opstream_view *view;
static int pipe_fd = -1;
static uint64_t period_ns, execution_records;
static _Atomic uint64_t execution_begin_ns; /* 0: none is measured */
static _Atomic uint64_t counted_before;     /* records counted before the present execution */
static atomic_bool stop;
static uint32_t fill[SAMPLES_MAX], fills;
static uint64_t delay[SAMPLES_MAX];
static uint32_t delays;

static void ok(const char *what, int code) {
    if (code != 0) {
        bench_fail(what, code);
    }
}

static struct opstream_counters counters(void) {
    struct opstream_counters now;
    ok("opstream_view_counters", opstream_view_counters(view, 0, bench_now_ns(), &now));
    return now;
}

/* An execution of a second's length that makes RATE records, its own included. */
static void write_workload(const char *path, uint64_t rate) {
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        bench_fail(path, -1);
    }
    execution_records = rate > 0 ? rate : 100;
    period_ns = EXECUTION_NS / execution_records;
    fprintf(file, "opstream-workload 1\n");
    for (uint64_t i = 0; i + 1 < execution_records; i++) {
        fprintf(file, "op\t%lu\t%lu\tType%lu\tmodel/layer_%lu/operator_%lu\n", i * period_ns, period_ns, i % 20, i % 40, i % 500);
    }
    ok("fclose", fclose(file));
}

/* The vendor's write end: the only one of a pipe, above the standard descriptors, in the application's table. */
static int find_pipe(void) {
    DIR *table = opendir("/proc/self/fd");
    if (table == NULL) {
        bench_fail("/proc/self/fd", -1);
    }
    int found = -1;
    for (struct dirent *entry; (entry = readdir(table)) != NULL;) {
        int fd = atoi(entry->d_name);
        struct stat status;
        if (fd > 2 && fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) {
            found = fd;
        }
    }
    closedir(table);
    if (found < 0) {
        bench_fail("finding the vendor's pipe", found);
    }
    return found;
}

static void *sample(void *unused) {
    uint64_t seen = 0, execution = 0;
    (void)unused;
    while (!atomic_load(&stop)) {
        int bytes = 0;
        if (pipe_fd >= 0 && ioctl(pipe_fd, FIONREAD, &bytes) == 0 && fills < SAMPLES_MAX) {
            fill[fills++] = (uint32_t)bytes;
        }
        uint64_t begin = atomic_load(&execution_begin_ns);
        if (begin != execution) {
            execution = begin;
            seen = 0;
        }
        if (begin != 0) {
            struct opstream_counters now = counters();
            uint64_t time = bench_now_ns(), got = now.records_recorded - atomic_load(&counted_before);
            if (got > execution_records - 1) {
                got = execution_records - 1;
            }
            for (; seen < got && delays < SAMPLES_MAX; seen++) {
                delay[delays++] = time - (begin + (seen + 1) * period_ns);
            }
        }
        nanosleep(&(struct timespec){.tv_nsec = SAMPLE_NS}, NULL);
    }
    return NULL;
}

static int by_u32(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int by_u64(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t process_cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void execute(opstream_model *model) {
    int code = 0;
    if (opstream_model_execute(model, &code) != 0) {
        bench_fail("opstream_model_execute", code);
    }
}

/* Everything that was executed is in the segment. */
static void settle(uint64_t records) {
    struct opstream_counters now;
    while (now = counters(), now.records_read < records) {
        if (now.models_paused > 0) {
            bench_fail("keeping up: the pipe stayed over half full and the publisher paused;", 0);
        }
        nanosleep(&(struct timespec){.tv_nsec = SAMPLE_NS}, NULL);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s RATE SECONDS\n", argv[0]);
        return 2;
    }
    uint64_t rate = strtoull(argv[1], NULL, 10), seconds = strtoull(argv[2], NULL, 10);
    char path[] = "/tmp/opstream-steady-XXXXXX";
    int file = mkstemp(path);
    if (file < 0) {
        bench_fail("mkstemp", file);
    }
    write_workload(path, rate);

    char text[512];
    int code = 0;
    opstream_model *model = NULL;
    opstream_publisher *publisher = NULL;
    if (opstream_model_open(NULL, path, 0, text, sizeof text, &code, &model) != 0) {
        bench_fail(text, code);
    }
    unlink(path);
    close(file);
    struct opstream_publisher_config config = {.kind = OPSTREAM_KIND_HOSTED, .app = "bench", .daemon_uid = UINT32_MAX};
    ok("opstream_publisher_open", opstream_publisher_open(&config, &publisher));
    if (opstream_publisher_subscribe(publisher, opstream_model_id(model), 0, "steady", OPSTREAM_WAIT_FOREVER, &code) != 0) {
        bench_fail("opstream_publisher_subscribe", code);
    }
    int segment = opstream_publisher_segment(publisher);
    ok("opstream_view_open", opstream_view_open(segment, 1u << 30, &view));
    pipe_fd = find_pipe();

    /* One execution for the unit of time to be known and every series to exist. */
    uint64_t executed = 1;
    execute(model);
    settle(executed * execution_records);

    if (rate == 0) {
        uint64_t begin = bench_now_ns(), cpu = process_cpu_ns();
        sleep((unsigned)seconds);
        printf("{\"rate\": 0, \"seconds\": %lu, \"process_cpu_percent\": %.4f}\n", seconds,
               100.0 * (double)(process_cpu_ns() - cpu) / (double)(bench_now_ns() - begin));
        return 0;
    }

    struct opstream_counters before = counters();
    pthread_t sampler;
    ok("pthread_create", pthread_create(&sampler, NULL, sample, NULL));
    uint64_t begin = bench_now_ns();
    for (uint64_t i = 0; i < seconds; i++) {
        settle(executed * execution_records);
        atomic_store(&counted_before, counters().records_recorded);
        atomic_store(&execution_begin_ns, bench_now_ns());
        execute(model);
        executed++;
    }
    settle(executed * execution_records);
    uint64_t end = bench_now_ns();
    atomic_store(&stop, true);
    pthread_join(sampler, NULL);
    if (opstream_publisher_unsubscribe(publisher, opstream_model_id(model), OPSTREAM_WAIT_FOREVER, &code) != 0) {
        bench_fail("opstream_publisher_unsubscribe", code);
    }
    struct opstream_counters after = counters();

    qsort(fill, fills, sizeof *fill, by_u32);
    qsort(delay, delays, sizeof *delay, by_u64);
    printf("{\"rate\": %lu, \"seconds\": %.2f, \"records\": %lu, \"records_per_second\": %.0f, \"rejected\": %lu, \"reader_cpu_percent\": "
           "%.3f, "
           "\"pipe_capacity_bytes\": %lu, \"fill_p50_percent\": %.2f, \"fill_p99_percent\": %.2f, \"delay_p50_ms\": %.3f, "
           "\"delay_p99_ms\": %.3f}\n",
           rate, (double)(end - begin) / 1e9, after.records_recorded - before.records_recorded,
           (double)(after.records_recorded - before.records_recorded) * 1e9 / (double)(end - begin),
           after.records_read - after.records_recorded,
           100.0 * (double)(after.reader_cpu_ns - before.reader_cpu_ns) / (double)(end - begin), after.pipe_capacity_bytes,
           100.0 * fill[fills / 2] / (double)after.pipe_capacity_bytes,
           100.0 * fill[fills - fills / 100 - 1] / (double)after.pipe_capacity_bytes, (double)(int64_t)delay[delays / 2] / 1e6,
           (double)(int64_t)delay[delays - delays / 100 - 1] / 1e6);
    opstream_publisher_close(publisher);
    opstream_model_close(model);
    return 0;
}
