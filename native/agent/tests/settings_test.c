/* What the environment and the command line tell the agent; each case in a process of its own, as they are read once. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "settings.h"

#define ARGUMENTS(text) text, sizeof text - 1

static void check_app(const char *arguments, size_t length, const char *expected) {
    char name[128];
    settings_app_of(arguments, length, name);
    CHECK_EQ_STR(name, expected);
}

static void test_names_of_command_lines(void) {
    check_app(ARGUMENTS("/opt/bin/server\0--port\0"
                        "80\0"),
              "server");
    check_app(ARGUMENTS("server\0"), "server");
    check_app(ARGUMENTS("/usr/bin/python3.11\0-u\0/srv/serve.py\0--app\0x\0"), "serve");
    check_app(ARGUMENTS("python\0-m\0uvicorn\0main:app\0"), "uvicorn");
    check_app(ARGUMENTS("python3\0-mhttp.server\0"), "http.server");
    check_app(ARGUMENTS("python3\0-X\0dev\0-W\0error\0tool\0"), "tool");
    check_app(ARGUMENTS("python3\0-c\0import acl\0"), "python3");
    check_app(ARGUMENTS("python3\0"), "python3");
    check_app(ARGUMENTS("/bin/bash\0/opt/run.sh\0"), "run.sh");
    check_app(ARGUMENTS("sh\0-c\0./server\0"), "sh");
    check_app(ARGUMENTS("pythonic\0serve.py\0"), "pythonic");
    check_app(ARGUMENTS("python3\0.py\0"), ".py");
    check_app("", 0, "unknown");
    check_app("cut off in the middle", 7, "cut off in the middle"); /* whatever lies behind is ended by a NUL */

    char longer[400];
    memset(longer, 'a', sizeof longer);
    memcpy(longer + 126, "\xc3\xa4", 2); /* a character that doesn't fit is left out whole */
    longer[399] = '\0';
    char name[128];
    settings_app_of(longer, sizeof longer, name);
    CHECK_EQ_U64(strlen(name), 126);
}

/* In a process of its own, whose environment is `variables` (ended by NULL) alone. */
static void with(char **variables, void (*check)(const struct settings *settings)) {
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        clearenv();
        for (char **variable = variables; *variable; variable++) {
            putenv(*variable);
        }
        check(agent_settings());
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ_INT(status, 0);
}

static void check_defaults(const struct settings *settings) {
    CHECK_EQ_STR(settings->app, "settings_test");
    CHECK_EQ_STR(settings->labels, "");
    CHECK_EQ_STR(settings->ignored, "");
    CHECK_EQ_STR(settings->log, "");
    CHECK(!settings->disable);
    CHECK(settings->daemon_uid == UINT32_MAX);
}

static void check_all(const struct settings *settings) {
    CHECK_EQ_STR(settings->app, "named");
    CHECK_EQ_STR(settings->socket, "/a/b");
    CHECK_EQ_STR(settings->labels, "pod=p-1,namespace=n");
    CHECK_EQ_STR(settings->log, "/dev/null");
    CHECK(settings->disable);
    CHECK(settings->daemon_uid == 7);
}

static void check_app_label(const struct settings *settings) {
    CHECK_EQ_STR(settings->app, "labelled");
    CHECK_EQ_STR(settings->labels, "pod=p,container=c");
}

static void check_wrong_values(const struct settings *settings) {
    CHECK_EQ_STR(settings->ignored, "OPSTREAM_LABELS, OPSTREAM_DAEMON_UID");
    CHECK_EQ_STR(settings->app, "settings_test");
    CHECK_EQ_STR(settings->labels, "");
    CHECK(settings->daemon_uid == UINT32_MAX);
    CHECK(!settings->disable);
}

int main(void) {
    test_names_of_command_lines();
    with((char *[]){NULL}, check_defaults);
    with((char *[]){"OPSTREAM_APP=named", "OPSTREAM_SOCKET=/a/b", "OPSTREAM_LABELS=app=other,pod=p-1,namespace=n", "OPSTREAM_LOG=/dev/null",
                    "OPSTREAM_DISABLE=1", "OPSTREAM_DAEMON_UID=7", NULL},
         check_all);
    with((char *[]){"OPSTREAM_LABELS=pod=p,app=labelled,container=c", NULL}, check_app_label);
    with((char *[]){"OPSTREAM_APP=", "OPSTREAM_LABELS=pod", "OPSTREAM_DAEMON_UID=-1", "OPSTREAM_DISABLE=0", NULL}, check_wrong_values);
    with((char *[]){"OPSTREAM_LABELS=9=x", "OPSTREAM_DAEMON_UID=7x", "OPSTREAM_DISABLE=", NULL}, check_wrong_values);
    with((char *[]){"OPSTREAM_LABELS==x", "OPSTREAM_DAEMON_UID=4294967295", NULL}, check_wrong_values);
    return 0;
}
