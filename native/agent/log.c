#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "settings.h"

#define LINE_BYTES 1024

/* Past RLIMIT_FSIZE a write raises a signal, which isn't the application's to see. */
static void write_line(int fd, const char *line, size_t length) {
    const struct timespec now = {0};
    sigset_t one, before, pending;
    sigemptyset(&one);
    sigaddset(&one, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &one, &before);
    if (write(fd, line, length) < 0 && errno == EFBIG && !sigismember(&pending, SIGXFSZ)) {
        sigtimedwait(&one, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void append(const char *path, const char *line, size_t length) {
    struct stat status;
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISCHR(status.st_mode))) {
        write_line(fd, line, length);
    }
    close(fd);
}

void agent_log(const char *format, ...) {
    const char *path = agent_settings()->log;
    if (!path[0]) {
        return;
    }
    int error = errno;
    char line[LINE_BYTES];
    struct timespec now;
    va_list arguments;
    clock_gettime(CLOCK_REALTIME, &now);
    int length = snprintf(line, sizeof line, "%lld.%03ld opstream[%d] ", (long long)now.tv_sec, now.tv_nsec / 1000000, (int)getpid());
    va_start(arguments, format);
    vsnprintf(line + length, sizeof line - (size_t)length - 1, format, arguments);
    va_end(arguments);
    strcat(line, "\n");
    append(path, line, strlen(line));
    errno = error;
}
