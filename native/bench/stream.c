#include "stream.h"

#include <acl/acl.h>
#include <acl/acl_prof.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FEED_BYTES (64u << 10)

/* The vendor keeps a pointer to it as long as the process lives. */
static int vendor_fd;
static aclmdlDataset *input, *output;

static struct {
    pthread_t thread;
    int file, write_fd;
    off_t from;
    uint64_t bytes;
} feed;

uint64_t bench_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

_Noreturn void bench_fail(const char *what, int code) {
    fprintf(stderr, "%s failed: %d (errno %d, %s)\n", what, code, errno, strerror(errno));
    exit(1);
}

static void acl(const char *what, int code) {
    if (code != 0) {
        bench_fail(what, code);
    }
}

static aclmdlDataset *dataset(aclmdlDesc *desc, size_t number, size_t (*bytes_of)(aclmdlDesc *, size_t)) {
    aclmdlDataset *set = aclmdlCreateDataset();
    for (size_t i = 0; i < number; i++) {
        size_t bytes = bytes_of(desc, i);
        void *memory = NULL;
        acl("aclrtMalloc", aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_NORMAL_ONLY));
        acl("aclmdlAddDatasetBuffer", aclmdlAddDatasetBuffer(set, aclCreateDataBuffer(memory, bytes)));
    }
    return set;
}

void stream_open(const char *workload, struct stream *ret_stream) {
    setenv("OPSTREAM_SIM_SPEED", "0", 1);
    acl("aclInit", aclInit(NULL));
    acl("aclrtSetDevice", aclrtSetDevice(0));
    *ret_stream = (struct stream){.file = -1};
    acl("aclmdlLoadFromFile", aclmdlLoadFromFile(workload, &ret_stream->model_id));
    acl("aclprofGetOpDescSize", aclprofGetOpDescSize(&ret_stream->record_bytes));
    aclmdlDesc *desc = aclmdlCreateDesc();
    acl("aclmdlGetDesc", aclmdlGetDesc(desc, ret_stream->model_id));
    input = dataset(desc, aclmdlGetNumInputs(desc), aclmdlGetInputSizeByIndex);
    output = dataset(desc, aclmdlGetNumOutputs(desc), aclmdlGetOutputSizeByIndex);
    ret_stream->file = memfd_create("records", MFD_CLOEXEC);
    if (ret_stream->file < 0) {
        bench_fail("memfd_create", ret_stream->file);
    }
}

void stream_make(struct stream *stream, uint64_t records) {
    vendor_fd = dup(stream->file);
    aclprofSubscribeConfig *config = aclprofCreateSubscribeConfig(1, (aclprofAicoreMetrics)0xFF, &vendor_fd);
    acl("aclprofModelSubscribe", aclprofModelSubscribe(stream->model_id, config));
    uint64_t wanted = stream->records + records;
    while (stream->records < wanted) {
        for (int i = 0; i < 16; i++) {
            acl("aclmdlExecute", aclmdlExecute(stream->model_id, input, output));
        }
        /* What is still in the device's queue doesn't show in the file yet: a few executions too many do no harm. */
        stream->records = (uint64_t)lseek(stream->file, 0, SEEK_END) / stream->record_bytes;
    }
    acl("aclprofModelUnSubscribe", aclprofModelUnSubscribe(stream->model_id));
    acl("aclprofDestroySubscribeConfig", aclprofDestroySubscribeConfig(config));
    stream->records = (uint64_t)lseek(stream->file, 0, SEEK_END) / stream->record_bytes;
}

static void *feeder(void *unused) {
    static uint8_t bytes[FEED_BYTES];
    (void)unused;
    while (feed.bytes > 0) {
        size_t piece = feed.bytes < sizeof bytes ? (size_t)feed.bytes : sizeof bytes;
        ssize_t got = pread(feed.file, bytes, piece, feed.from);
        if (got <= 0) {
            bench_fail("pread", (int)got);
        }
        for (ssize_t put = 0; put < got;) {
            ssize_t part = write(feed.write_fd, bytes + put, (size_t)(got - put));
            if (part < 0) {
                bench_fail("write", (int)part);
            }
            put += part;
        }
        feed.from += got;
        feed.bytes -= (uint64_t)got;
    }
    close(feed.write_fd);
    return NULL;
}

int stream_feed(struct stream *stream, uint64_t records) {
    int ends[2];
    if (stream->taken + records > stream->records) {
        bench_fail("stream_feed: more records than were made", 0);
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        bench_fail("pipe2", -1);
    }
    (void)fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    feed.file = stream->file;
    feed.write_fd = ends[1];
    feed.from = (off_t)(stream->taken * stream->record_bytes);
    feed.bytes = records * stream->record_bytes;
    stream->taken += records;
    int code = pthread_create(&feed.thread, NULL, feeder, NULL);
    if (code != 0) {
        bench_fail("pthread_create", code);
    }
    return ends[0];
}

void stream_fed(void) {
    pthread_join(feed.thread, NULL);
}
