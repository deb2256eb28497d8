/* What the profiling half's tests share. A program has cases; each runs in a process of its own, started by exec so that the environment is
 * there when the libraries are loaded, and may be expected to crash or to hang. */
#ifndef OPSTREAM_SIM_PROF_CASE_H
#define OPSTREAM_SIM_PROF_CASE_H

#include "acl/acl.h"
#include "acl/acl_prof.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CASE_FAILED 99
#define CASE_WRITE_FD 100 /* ENDS_WHEN_READ: a pipe whose read end the parent has */
#define CASE_READY_FD 101 /* ENDS_WHEN_READ: the case says here that it is about to hang */
#define RECORD 80u
#define PATIENCE_MS 60000

#define CHECK(condition)                                                                                                                   \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);                                      \
            _exit(CASE_FAILED);                                                                                                            \
        }                                                                                                                                  \
    } while (0)

enum prof_end {
    ENDS_CLEAN,   /* exit status 0 */
    ENDS_CRASHED, /* a signal, or a sanitizer's report of one */
    ENDS_BY_SIGPIPE,
    ENDS_WHEN_READ, /* hangs until the parent reads CASE_WRITE_FD's pipe, then status 0 */
};

struct prof_case {
    const char *name;
    void (*run)(void);
    enum prof_end end;
    const char *faults;
    const char *variable; /* one more, NAME=VALUE */
};

struct stream {
    int read_fd;
    int *write_fd; /* lives as long as the process, as the profiler may read it at any time */
};

static inline uint64_t journal_value(const char *name) {
    static const char *journal;
    if (!journal) {
        int fd = open(getenv("OPSTREAM_SIM_JOURNAL"), O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0);
        journal = mmap(NULL, 2080, PROT_READ, MAP_SHARED, fd, 0);
        CHECK(journal != MAP_FAILED);
        close(fd);
        CHECK(memcmp(journal, "OPSIMJNL\1\0\0\0\0\0\0\0\100\0\0\0\0\0\0\0\40\0\0\0\0\0\0\0", 32) == 0);
    }
    for (const char *slot = journal + 32; slot < journal + 2080; slot += 32) {
        if (strncmp(slot, name, 24) == 0) {
            return __atomic_load_n((const uint64_t *)(const void *)(slot + 24), __ATOMIC_RELAXED);
        }
    }
    fprintf(stderr, "the journal has no %s\n", name);
    _exit(CASE_FAILED);
}

/* Waits for a state of the journal that is bound to come. */
static inline void journal_await(const char *name, uint64_t value) {
    for (int ms = 0; journal_value(name) < value; ms++) {
        CHECK(ms < PATIENCE_MS);
        poll(NULL, 0, 1);
    }
}

static inline struct stream open_stream(void) {
    static int write_fds[128];
    static unsigned used;
    int ends[2];
    CHECK(used < 128 && pipe2(ends, O_CLOEXEC) == 0);
    write_fds[used] = ends[1];
    return (struct stream){.read_fd = ends[0], .write_fd = &write_fds[used++]};
}

/* Loads a model of `count` operators Conv2D "layer/0", "layer/1" and so on, 1,000 ns each, one after the other. */
static inline uint32_t load_model(int device, unsigned count) {
    char path[] = "/tmp/opstream-test-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    FILE *file = fdopen(fd, "w");
    CHECK(file);
    fprintf(file, "opstream-workload 1\n");
    for (unsigned i = 0; i < count; i++) {
        fprintf(file, "op\t%u\t1000\tConv2D\tlayer/%u\n", i * 1000, i);
    }
    CHECK(fclose(file) == 0);
    uint32_t id;
    CHECK(aclrtSetDevice(device) == 0);
    CHECK(aclmdlLoadFromFile(path, &id) == 0);
    unlink(path);
    return id;
}

static inline void execute(uint32_t model) {
    aclmdlDataset *input = aclmdlCreateDataset();
    aclmdlDataset *output = aclmdlCreateDataset();
    CHECK(aclmdlExecute(model, input, output) == 0);
    aclmdlDestroyDataset(input);
    aclmdlDestroyDataset(output);
}

static inline aclError subscribe(uint32_t model, struct stream stream) {
    aclprofSubscribeConfig *config = aclprofCreateSubscribeConfig(1, ACL_AICORE_NONE, stream.write_fd);
    CHECK(config);
    aclError status = aclprofModelSubscribe(model, config);
    CHECK(aclprofDestroySubscribeConfig(config) == 0);
    return status;
}

/* Reads exactly so many bytes. */
static inline void read_bytes(int fd, void *to, size_t count) {
    while (count > 0) {
        struct pollfd readable = {fd, POLLIN, 0};
        CHECK(poll(&readable, 1, PATIENCE_MS) == 1);
        ssize_t got = read(fd, to, count);
        CHECK(got > 0);
        to = (char *)to + got;
        count -= (size_t)got;
    }
}

/* Reads to the end of the file; returns the number of bytes. */
static inline size_t read_all(int fd, uint8_t *to, size_t room) {
    size_t count = 0;
    for (ssize_t got; (got = read(fd, to + count, room - count)) != 0; count += (size_t)got) {
        CHECK(got > 0);
    }
    return count;
}

static inline bool ends_in_time(pid_t pid, int ms) {
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    CHECK(pidfd >= 0);
    struct pollfd ended = {pidfd, POLLIN, 0};
    bool in_time = poll(&ended, 1, ms) == 1;
    close(pidfd);
    return in_time;
}

static inline int status_of(pid_t pid) {
    int status;
    if (!ends_in_time(pid, PATIENCE_MS)) {
        kill(pid, SIGKILL);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

static inline bool crashed(int status) {
    return WIFSIGNALED(status) ? WTERMSIG(status) != SIGKILL : WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != CASE_FAILED;
}

static inline void exec_case(const struct prof_case *test, const char *journal, const int pipe_ends[2], const int ready[2]) {
    setenv("OPSTREAM_SIM_SPEED", "0", 1);
    setenv("OPSTREAM_SIM_JOURNAL", journal, 1);
    if (test->faults) {
        setenv("OPSTREAM_SIM_FAULTS", test->faults, 1);
    }
    if (test->variable) {
        putenv((char *)test->variable);
    }
    CHECK(dup2(pipe_ends[1], CASE_WRITE_FD) >= 0 && dup2(ready[1], CASE_READY_FD) >= 0);
    execl("/proc/self/exe", "case", test->name, (char *)NULL);
    _exit(CASE_FAILED);
}

/* Whether the case ended as it should. */
static inline bool run_case(const struct prof_case *test) {
    char journal[] = "/tmp/opstream-test-XXXXXX";
    int fd = mkstemp(journal);
    int pipe_ends[2], ready[2];
    CHECK(fd >= 0 && pipe2(pipe_ends, O_CLOEXEC) == 0 && pipe2(ready, O_CLOEXEC) == 0);
    close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        exec_case(test, journal, pipe_ends, ready);
    }
    CHECK(pid > 0);
    close(pipe_ends[1]);
    close(ready[1]);

    bool hung = false;
    char byte[65536];
    if (test->end == ENDS_WHEN_READ && read(ready[0], byte, 1) == 1) {
        hung = !ends_in_time(pid, 300);
        while (read(pipe_ends[0], byte, sizeof byte) > 0)
            ;
    }
    int status = status_of(pid);
    close(pipe_ends[0]);
    close(ready[0]);
    unlink(journal);
    switch (test->end) {
    case ENDS_CRASHED:
        return crashed(status);
    case ENDS_BY_SIGPIPE:
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE;
    case ENDS_WHEN_READ:
        return hung && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    default:
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
}

static inline int run_cases(int argc, char **argv, const struct prof_case *cases, size_t count) {
    int failed = 0;
    for (size_t i = 0; i < count; i++) {
        if (argc == 2 && strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
        if (argc == 1) {
            bool good = run_case(&cases[i]);
            printf("%s %s\n", good ? "ok    " : "FAILED", cases[i].name);
            fflush(stdout);
            failed += !good;
        }
    }
    return failed || argc != 1;
}

#define RUN_CASES(cases)                                                                                                                   \
    int main(int argc, char **argv) {                                                                                                      \
        return run_cases(argc, argv, cases, sizeof(cases) / sizeof *(cases));                                                              \
    }

#endif
