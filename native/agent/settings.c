#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "label.h"

#define PUBLISH "/opstreamd/publish/agent.sock"
#define SYSTEMS "/run" PUBLISH
#define COMMAND_LINE_BYTES 4096

static struct settings settings = {.daemon_uid = UINT32_MAX};
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- The application's name ---- */

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void set_name(const char *name, size_t length, char *ret_name) {
    size_t fits = label_fitting(name, length, 127);
    memcpy(ret_name, name, fits);
    ret_name[fits] = '\0';
}

static const char *argument_after(const char *argument, const char *end) {
    argument += strlen(argument) + 1;
    return argument < end ? argument : NULL;
}

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

static bool is_interpreter(const char *program) {
    static const char *const names[] = {"python", "pypy", "perl", "ruby", "node", "bash", "dash"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rest = program + strlen(names[i]);
        if (starts_with(program, names[i]) && rest[strspn(rest, "0123456789.")] == '\0') {
            return true;
        }
    }
    return strcmp(program, "sh") == 0;
}

/* NULL when the interpreter was told no file. */
static const char *script_of(const char *argument, const char *end, bool python) {
    while ((argument = argument_after(argument, end)) != NULL && argument[0] == '-' && argument[1] != '\0') {
        if (python && starts_with(argument, "-m")) {
            return argument[2] ? argument + 2 : argument_after(argument, end);
        }
        if (starts_with(argument, "-c") || starts_with(argument, "-e")) {
            return NULL;
        }
        if (python && (strcmp(argument, "-W") == 0 || strcmp(argument, "-X") == 0)) {
            argument = argument_after(argument, end);
            if (!argument) {
                return NULL;
            }
        }
    }
    return argument && argument[0] != '-' ? argument : NULL;
}

void settings_app_of(const char *arguments, size_t length, char *ret_name) {
    const char *program = base_of(arguments), *end = arguments + length;
    size_t bytes = strlen(program);
    if (is_interpreter(program)) {
        const char *script = script_of(arguments, end, program[0] == 'p' && program[1] == 'y');
        if (script && script[0]) {
            program = base_of(script);
            bytes = strlen(program);
            const char *dot = strrchr(program, '.');
            bytes = dot && dot != program && (strcmp(dot, ".py") == 0 || strcmp(dot, ".pyc") == 0) ? (size_t)(dot - program) : bytes;
        }
    }
    set_name(bytes ? program : "unknown", bytes ? bytes : strlen("unknown"), ret_name);
}

static void name_from_command_line(char *ret_name) {
    char arguments[COMMAND_LINE_BYTES + 1] = "";
    int fd = open("/proc/thread-self/cmdline", O_RDONLY | O_CLOEXEC); /* the process's own is empty once its main thread has ended */
    if (fd < 0) {
        fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC); /* before Linux 3.17 */
    }
    ssize_t length = fd >= 0 ? read(fd, arguments, COMMAND_LINE_BYTES) : 0;
    if (fd >= 0) {
        close(fd);
    }
    settings_app_of(arguments, length > 0 ? (size_t)length : 0, ret_name);
}

/* ---- Values ---- */

static bool label_name_fits(const char *name, const char *end) {
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    return length > 0 && name + length == end && !strchr("0123456789", name[0]);
}

/* `app` is not one of them: it names the application where OPSTREAM_APP doesn't. */
static bool read_labels(const char *text) {
    char labels[sizeof settings.labels] = "";
    if (strlen(text) >= sizeof labels) {
        return false;
    }
    size_t length = 0;
    for (const char *pair = text; *pair;) {
        const char *end = strchrnul(pair, ','), *equals = memchr(pair, '=', (size_t)(end - pair));
        if (!equals || !label_name_fits(pair, equals)) {
            return false;
        }
        if (equals - pair == 3 && memcmp(pair, "app", 3) == 0) {
            if (!settings.app[0]) {
                set_name(equals + 1, (size_t)(end - equals - 1), settings.app);
            }
        } else {
            length += (size_t)sprintf(labels + length, "%s%.*s", length ? "," : "", (int)(end - pair), pair);
        }
        pair = *end ? end + 1 : end;
    }
    strcpy(settings.labels, labels);
    return true;
}

static bool read_uid(const char *text) {
    char *end;
    errno = 0;
    unsigned long uid = strtoul(text, &end, 10);
    if (!strchr("0123456789", text[0]) || *end || errno || uid >= UINT32_MAX) {
        return false;
    }
    settings.daemon_uid = (uint32_t)uid;
    return true;
}

static bool read_app(const char *text) {
    set_name(text, strlen(text), settings.app);
    return true;
}

static bool read_socket(const char *text) {
    if (strlen(text) >= sizeof settings.socket) {
        return false;
    }
    strcpy(settings.socket, text);
    return true;
}

/* ---- Reading ---- */

static const char *value_of(const char *name) {
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

static bool is_on(const char *name) {
    const char *value = value_of(name);
    return value && strcmp(value, "0") != 0;
}

static void set(const char *name, bool (*accept)(const char *)) {
    const char *value = value_of(name);
    if (value && !accept(value)) {
        size_t length = strlen(settings.ignored);
        snprintf(settings.ignored + length, sizeof settings.ignored - length, "%s%s", length ? ", " : "", name);
    }
}

/* Where a person's own daemon has it (its configuration's `agent.socket`). */
static void persons_socket(void) {
    const char *runtime = value_of("XDG_RUNTIME_DIR"), *state = value_of("XDG_STATE_HOME"), *home = value_of("HOME");
    const char *folder = runtime ? runtime : state ? state : home;
    const char *inside = folder == home && folder ? "/.local/state" : "";
    int length = folder ? snprintf(settings.socket, sizeof settings.socket, "%s%s" PUBLISH, folder, inside) : 0;
    if (length >= (int)sizeof settings.socket) {
        settings.socket[0] = '\0';
    }
}

/* A person's own daemon, where one has been, before the machine's. */
static void default_socket(void) {
    if (geteuid() != 0) {
        persons_socket();
    }
    if (!settings.socket[0] || (access(settings.socket, F_OK) != 0 && access(SYSTEMS, F_OK) == 0)) {
        strcpy(settings.socket, SYSTEMS);
    }
}

static void read_environment(void) {
    const char *log = value_of("OPSTREAM_LOG");
    if (log && strlen(log) < sizeof settings.log) {
        strcpy(settings.log, log);
    }
    settings.disable = is_on("OPSTREAM_DISABLE");
    set("OPSTREAM_APP", read_app);
    set("OPSTREAM_LABELS", read_labels);
    if (!settings.app[0]) {
        name_from_command_line(settings.app);
    }
    default_socket();
    set("OPSTREAM_SOCKET", read_socket);
    set("OPSTREAM_DAEMON_UID", read_uid);
}

const struct settings *agent_settings(void) {
    pthread_once(&once, read_environment);
    return &settings;
}
