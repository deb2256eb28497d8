#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"
#include "headroom.h"

static char root[] = "/tmp/opstream-headroom-XXXXXX";

static void put(const char *name, const char *content) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(content, file) >= 0 && fclose(file) == 0);
}

static struct headroom measure(const char *cgroups) {
    char path[512];
    struct headroom headroom;
    put("cgroup", cgroups);
    snprintf(path, sizeof path, "%s/cgroup", root);
    headroom_measure(path, root, &headroom);
    return headroom;
}

static void test_version_2(void) {
    put("pod/app/memory.max", "1000000\n");
    put("pod/app/memory.current", "900000\n");
    put("pod/app/memory.stat", "anon 100\nfile 700000\ninactive_file 600000\n");
    put("pod/app/pids.max", "100\n");
    put("pod/app/pids.current", "10\n");
    struct headroom headroom = measure("0::/pod/app\n");
    CHECK_EQ_U64(headroom.memory_bytes, 700000);
    CHECK_EQ_U64(headroom.threads, 90);

    /* A parent's limit binds as well; "max" is none. */
    put("pod/memory.max", "500000\n");
    put("pod/memory.current", "600000\n");
    put("pod/pids.max", "max\n");
    put("pod/pids.current", "10\n");
    headroom = measure("0::/pod/app\n");
    CHECK_EQ_U64(headroom.memory_bytes, 0);
    CHECK_EQ_U64(headroom.threads, 90);
}

static void test_version_1(void) {
    put("memory/job/memory.limit_in_bytes", "4096000\n");
    put("memory/job/memory.usage_in_bytes", "96000\n");
    put("pids/job/pids.max", "77\n");
    put("pids/job/pids.current", "7\n");
    struct headroom headroom = measure("12:pids:/job\n8:cpu,cpuacct:/other\n4:memory:/job\n0::/\n");
    CHECK_EQ_U64(headroom.memory_bytes, 4000000);
    CHECK_EQ_U64(headroom.threads, 70);
}

/* In a container without a namespace of its own the path is the host's, and the mount is the container's group. */
static void test_path_of_the_host(void) {
    put("memory/memory.limit_in_bytes", "2000\n");
    put("memory/memory.usage_in_bytes", "500\n");
    CHECK_EQ_U64(measure("4:memory:/docker/0123\n").memory_bytes, 1500);
}

static void test_nothing_to_be_told(void) {
    struct headroom headroom;
    headroom_measure("/nonexistent", "/nonexistent", &headroom);
    CHECK_EQ_U64(headroom.memory_bytes, UINT64_MAX);
}

static void test_user_limit(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct rlimit limit = {.rlim_cur = 40, .rlim_max = 40};
        struct headroom headroom;
        CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0);
        CHECK(geteuid() != 0 || setuid(65534) == 0);
        headroom_measure("/nonexistent", "/nonexistent", &headroom);
        CHECK(headroom.threads < 40);
        CHECK(!headroom_enough());
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_EQ_INT(WEXITSTATUS(status), 0);
}

int main(void) {
    CHECK(mkdtemp(root));
    test_version_2();
    test_version_1();
    test_path_of_the_host();
    test_nothing_to_be_told();
    test_user_limit();
    char command[512];
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK(system(command) == 0);
    return 0;
}
