#include <errno.h>
#include <fcntl.h>

#include "app.h"
#include "device_pipe.h"

static struct reader *reader;

/* All devices at once: the first pipes are large, and together they stay within half of what the user may have. */
static void test_sizes(void) {
    unsigned long soft_pages;
    size_t large = 0, enlarged_bytes = 0;
    FILE *file = fopen("/proc/sys/fs/pipe-user-pages-soft", "r");
    CHECK(file && fscanf(file, "%lu", &soft_pages) == 1 && fclose(file) == 0);
    for (uint32_t device = 0; device < DEVICES_MAX; device++) {
        CHECK_EQ_INT(device_pipe_open(device, reader), 0);
        int fd = *device_pipe_write_end(device), capacity = fcntl(fd, F_GETPIPE_SZ);
        CHECK(capacity > 0);
        CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        large += capacity == 1 << 20;
        enlarged_bytes += capacity > 1 << 16 ? (size_t)capacity : 0;
        CHECK_EQ_INT(device_pipe_open(device, reader), 0); /* it has one */
        CHECK_EQ_INT(*device_pipe_write_end(device), fd);
    }
    CHECK(soft_pages == 0 || enlarged_bytes <= soft_pages / 2 * (size_t)sysconf(_SC_PAGESIZE));
    CHECK(large > 0 || (soft_pages > 0 && soft_pages < 512));
    for (uint32_t device = 0; device < DEVICES_MAX; device++) {
        int fd = *device_pipe_write_end(device);
        device_pipe_close(device);
        CHECK_EQ_INT(*device_pipe_write_end(device), -1);
        CHECK(fcntl(fd, F_GETFD) < 0 && errno == EBADF);
    }
}

/* The vendor has closed it, as it does when the last device goes off. */
static void test_closed_by_vendor(void) {
    CHECK_EQ_INT(device_pipe_open(5, reader), 0);
    close(*device_pipe_write_end(5));
    *device_pipe_write_end(5) = -1;
    CHECK_EQ_INT(device_pipe_open(5, reader), 0);
    device_pipe_check(5);
    CHECK(*device_pipe_write_end(5) >= 0);
    device_pipe_close(5);
}

/* The application has: the vendor is kept off the number, and so are we. */
static void test_number_of_somebody_else(void) {
    CHECK_EQ_INT(device_pipe_open(6, reader), 0);
    int number = *device_pipe_write_end(6), other[2];
    CHECK(pipe(other) == 0 && dup2(other[1], number) == number);
    device_pipe_check(6);
    CHECK_EQ_INT(*device_pipe_write_end(6), -1);
    device_pipe_close(6);
    CHECK(fcntl(number, F_GETFD) >= 0);
    CHECK_EQ_INT(device_pipe_open(6, reader), 0);
    CHECK(*device_pipe_write_end(6) >= 0 && *device_pipe_write_end(6) != number);
    device_pipe_close(6);
}

int main(void) {
    struct vendor_library library;
    struct vendor vendor;
    struct segment_writer writer;
    struct segment_identity identity = {.kind = OPSTREAM_KIND_AGENT, .app = "test"};
    app_start();
    CHECK_EQ_INT(vendor_library_open(app_library_path(), NULL, 0, &library), 0);
    CHECK_EQ_INT(vendor_load(&library, NULL, 0, &vendor), 0);
    CHECK_EQ_INT(segment_create(&identity, 64, &writer), 0);
    CHECK_EQ_INT(reader_start(&vendor, &writer, &reader), 0);
    CHECK_EQ_INT(*device_pipe_write_end(0), -1);
    test_sizes();
    test_closed_by_vendor();
    test_number_of_somebody_else();
    reader_stop(reader);
    segment_free(&writer);
    return 0;
}
