/* What a reader doesn't even begin with: a descriptor that is no segment, and a header that lies. */
#include <fcntl.h>
#include <sys/syscall.h>

#include "forgery.h"

static int open_status(int fd) {
    opstream_view *view = NULL;
    int status = opstream_view_open(fd, MAX_BYTES, &view);
    CHECK((status == 0) == (view != NULL));
    opstream_view_free(view);
    return status;
}

static void check_descriptors(void) {
    int ends[2];
    CHECK_EQ_INT(pipe(ends), 0);
    CHECK_EQ_INT(open_status(ends[0]), OPSTREAM_E_NOT_MEMFD);
    int null = open("/dev/null", O_RDONLY);
    CHECK_EQ_INT(open_status(null), OPSTREAM_E_NOT_MEMFD);
    CHECK_EQ_INT(open_status(-1), OPSTREAM_E_NOT_MEMFD);
    int unsealed = memfd_make(1 << 20), sealed = memfd_make(1 << 20), small = memfd_make(64),
        huge = (int)syscall(SYS_memfd_create, "huge", 6 /* sealing, hugetlb */);
    CHECK_EQ_INT(open_status(unsealed), OPSTREAM_E_UNSEALED);
    CHECK_EQ_INT(memfd_seal(sealed), 0);
    CHECK_EQ_INT(open_status(sealed), OPSTREAM_E_MAGIC);
    CHECK_EQ_INT(memfd_seal(small), 0);
    CHECK_EQ_INT(open_status(small), OPSTREAM_E_SIZE);
    if (huge >= 0) {
        CHECK_EQ_INT(open_status(huge), OPSTREAM_E_NOT_MEMFD);
    }
    struct segment_writer writer = new_segment(64);
    opstream_view *view;
    CHECK_EQ_INT(opstream_view_open(writer.fd, writer.bytes - 1, &view), OPSTREAM_E_SIZE);
    segment_free(&writer);
    for (size_t i = 0; i < 7; i++) {
        close((const int[]){ends[0], ends[1], null, unsealed, sealed, small, huge}[i]);
    }
}

static void lie_magic(struct segment *segment) {
    segment->header.magic++;
}
static void lie_version(struct segment *segment) {
    segment->header.version++;
}
static void lie_size(struct segment *segment) {
    segment->header.segment_bytes++;
}
static void lie_header_bytes(struct segment *segment) {
    segment->header.header_bytes -= 64;
}
static void lie_cells(struct segment *segment) {
    segment->header.cells++;
}
static void lie_bound(struct segment *segment) {
    segment->header.bounds_ns[100]++;
}
static void lie_kind(struct segment *segment) {
    segment->header.identity.kind = 3;
}
static void lie_app(struct segment *segment) {
    memset(segment->header.identity.app, 'x', sizeof(segment->header.identity.app));
}
static void lie_digest(struct segment *segment) {
    memset(segment->header.identity.config_digest, 'x', 34);
}
static void lie_table_kind(struct segment *segment) {
    segment->header.directory[1].kind = 1;
}
static void lie_table_outside(struct segment *segment) {
    segment->header.directory[3].offset = segment->header.segment_bytes + 4096;
}
static void lie_table_end(struct segment *segment) {
    segment->header.directory[3].capacity *= 2;
}
static void lie_table_wraps(struct segment *segment) {
    segment->header.directory[2].offset = UINT64_MAX - 4095;
}
static void lie_table_capacity(struct segment *segment) {
    segment->header.directory[2].capacity = UINT64_MAX / sizeof(struct segment_series);
}
static void lie_table_crooked(struct segment *segment) {
    segment->header.directory[2].offset += 8;
}
static void lie_table_in_header(struct segment *segment) {
    segment->header.directory[2].offset = 4096;
}
static void lie_row_bytes(struct segment *segment) {
    segment->header.directory[0].row_bytes = 8;
}
static void lie_others(struct segment *segment) {
    segment->header.directory[1].capacity = 1;
}

static void check_lying_headers(void) {
    static const struct {
        void (*lie)(struct segment *);
        int status;
    } lies[] = {
        {lie_magic, OPSTREAM_E_MAGIC},
        {lie_version, OPSTREAM_E_VERSION},
        {lie_size, OPSTREAM_E_SIZE},
        {lie_header_bytes, OPSTREAM_E_LAYOUT},
        {lie_cells, OPSTREAM_E_LAYOUT},
        {lie_bound, OPSTREAM_E_LAYOUT},
        {lie_kind, OPSTREAM_E_LAYOUT},
        {lie_app, OPSTREAM_E_LAYOUT},
        {lie_digest, OPSTREAM_E_LAYOUT},
        {lie_table_kind, OPSTREAM_E_LAYOUT},
        {lie_table_outside, OPSTREAM_E_LAYOUT},
        {lie_table_end, OPSTREAM_E_LAYOUT},
        {lie_table_wraps, OPSTREAM_E_LAYOUT},
        {lie_table_capacity, OPSTREAM_E_LAYOUT},
        {lie_table_crooked, OPSTREAM_E_LAYOUT},
        {lie_table_in_header, OPSTREAM_E_LAYOUT},
        {lie_row_bytes, OPSTREAM_E_LAYOUT},
        {lie_others, OPSTREAM_E_LAYOUT},
    };
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        int fd = lying_memfd(lies[i].lie);
        CHECK_EQ_INT(open_status(fd), lies[i].status);
        close(fd);
    }
}

int main(void) {
    check_descriptors();
    check_lying_headers();
    return 0;
}
