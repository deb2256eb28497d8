#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"

#define LARGEST_BYTES (256 << 20)

struct source source_of_memory(const char *name, const void *text, size_t size) {
    struct source source = {.name = name, .text = text, .end = (const char *)text + size};
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        source.text += 3;
    }
    return source;
}

static aclError read_all(int fd, const char *path, struct source *ret_source) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return fail(ACL_ERROR_INVALID_FILE, "%s: %s", path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(ACL_ERROR_INVALID_FILE, "%s: is %s, not a file", path, S_ISDIR(status.st_mode) ? "a directory" : "a device or a pipe");
    }
    if (status.st_size > LARGEST_BYTES) {
        return fail(ACL_ERROR_INVALID_FILE, "%s: is larger than %d bytes", path, LARGEST_BYTES);
    }
    size_t size = (size_t)status.st_size;
    char *content = malloc(size + 1);
    if (!content) {
        return fail(ACL_ERROR_BAD_ALLOC, "%s: no memory for its %zu bytes", path, size);
    }
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(fd, content + done, size - done);
        if (got < 0 && errno != EINTR) {
            free(content);
            return fail(ACL_ERROR_INVALID_FILE, "%s: %s", path, strerror(errno));
        }
        if (got == 0) {
            break;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    *ret_source = source_of_memory(path, content, done);
    ret_source->content = content;
    return ACL_SUCCESS;
}

aclError source_open(const char *path, struct source *ret_source) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: opening a pipe must not wait for its writer */
    if (fd < 0) {
        return fail(ACL_ERROR_INVALID_FILE, "%s: %s", path, strerror(errno));
    }
    aclError error = read_all(fd, path, ret_source);
    close(fd);
    return error;
}

void source_close(struct source *source) {
    free(source->content);
}

aclError source_fail(const struct source *source, const char *at, const char *format, ...) {
    size_t line = 1;
    const char *line_start = source->text;
    for (const char *c = source->text; c < at; c++) {
        if (*c == '\n') {
            line++;
            line_start = c + 1;
        }
    }
    char complaint[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(complaint, sizeof complaint, format, arguments);
    va_end(arguments);
    return fail(ACL_ERROR_INVALID_FILE, "%s:%zu:%zu: %s", source->name, line, (size_t)(at - line_start) + 1, complaint);
}

aclError source_fail_field(const struct source *source, const char *at, size_t length, const char *what, const char *complaint) {
    return source_fail(source, at, "%s: \"%.*s\" %s", what, (int)(length < 80 ? length : 80), at, complaint);
}
