/* Any bytes as a segment: whatever they are, the daemon neither crashes nor says what can't be. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "label.h"
#include "memfd.h"
#include "opstream.h"
#include "segment_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(int condition) {
    if (!condition) {
        abort();
    }
}

/* One memfd for all inputs: the seals let a mapping made before write on, as they let a publisher. */
static uint8_t *segment_bytes(int *ret_fd) {
    static uint8_t *mapping;
    static int fd;
    if (!mapping) {
        fd = memfd_make(FUZZ_SEGMENT_BYTES);
        mapping = mmap(NULL, FUZZ_SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        require(mapping != MAP_FAILED && !memfd_seal(fd));
    }
    *ret_fd = fd;
    return mapping;
}

static void check_text(const char *text, size_t length) {
    size_t step;
    for (size_t i = 0; i < length; i += step) {
        step = label_character(text + i, length - i);
        require(step > 0);
    }
    require(length == 0 || text[length - 1] == '\n');
}

static void check_counters(opstream_view *view, int departed, struct opstream_counters *before) {
    struct opstream_counters now;
    if (opstream_view_counters(view, departed, UINT64_C(1) << 40, &now)) {
        return;
    }
    require(now.records_read == now.records_recorded + now.records_corrupt + now.records_name + now.records_time + now.records_interrupted);
    require(now.records_read >= before->records_read && now.records_recorded >= before->records_recorded &&
            now.bytes_discarded >= before->bytes_discarded);
    require(now.pipe_high_water_ppm <= 1000000 && now.reader_path <= 2 && now.time_unit <= 2);
    *before = now;
}

static void read_all(opstream_view *view, opstream_exposition *exposition, struct opstream_counters *counters) {
    const struct opstream_exposition_options options = {UINT32_MAX, UINT32_MAX, 40, 1};
    struct opstream_subscribe_error errors[OPSTREAM_SUBSCRIBE_ERRORS_MAX];
    struct opstream_view_info info;
    uint64_t cells[OPSTREAM_CELLS], sum_ns;
    const char *text;
    size_t length, count, series = opstream_exposition_series(exposition);
    require(!opstream_view_info(view, &info));
    require(memchr(info.app, 0, sizeof(info.app)) && memchr(info.labels, 0, sizeof(info.labels)));
    require(!opstream_view_subscribe_errors(view, errors, &count) && count <= OPSTREAM_SUBSCRIBE_ERRORS_MAX);
    require(!opstream_view_delay(view, cells, &sum_ns));
    check_counters(view, 0, counters);
    check_counters(view, 1, counters);
    if (opstream_exposition_add(exposition, view, "app", ",pod=\"x\"", UINT64_C(1) << 40, UINT64_C(1) << 40)) {
        require(opstream_exposition_series(exposition) == series);
    }
    require(!opstream_exposition_text(exposition, &options, &text, &length));
    check_text(text, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    size_t patches = length ? bytes[0] : 0, begin = 1 + patches * FUZZ_PATCH_BYTES;
    if (length < begin) {
        return 0;
    }
    size_t segment_length = length - begin < FUZZ_SEGMENT_BYTES ? length - begin : FUZZ_SEGMENT_BYTES;
    int fd;
    uint8_t *segment = segment_bytes(&fd);
    memcpy(segment, bytes + begin, segment_length);
    memset(segment + segment_length, 0, FUZZ_SEGMENT_BYTES - segment_length);

    opstream_view *view;
    if (opstream_view_open(fd, FUZZ_SEGMENT_BYTES, &view)) {
        return 0;
    }
    opstream_exposition *exposition;
    struct opstream_counters counters = {0};
    require(!opstream_exposition_new(&exposition));
    read_all(view, exposition, &counters);
    for (const uint8_t *patch = bytes + 1; patch < bytes + begin; patch += FUZZ_PATCH_BYTES) {
        segment[(patch[0] | patch[1] << 8) % FUZZ_SEGMENT_BYTES] = patch[2];
    }
    read_all(view, exposition, &counters);
    opstream_exposition_free(exposition);
    opstream_view_free(view);
    return 0;
}
