#include "inlet.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PPM UINT64_C(1000000)
#define NAP_SHORTEST_NS UINT64_C(100000)
#define NAP_LONGEST_NS UINT64_C(1000000)
#define NAP_FILL_DIVISOR 8u /* a nap is to end when an eighth of the pipe is full */

int inlet_new(const struct vendor *vendor, size_t record_bytes, uint32_t device, size_t capacity_bytes, struct inlet **ret_inlet) {
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (record_bytes == 0 || record_bytes > page_bytes || capacity_bytes < page_bytes) {
        return OPSTREAM_E_INVALID;
    }
    struct inlet *inlet = calloc(1, sizeof *inlet);
    if (inlet == NULL) {
        return OPSTREAM_E_MEMORY;
    }
    inlet->device = device;
    inlet->fd = -1;
    inlet->capacity_bytes = capacity_bytes;
    inlet->usable_bytes = capacity_bytes / page_bytes * (page_bytes / record_bytes * record_bytes);
    account_clock_init(&inlet->clock);
    int status = frame_new(vendor, record_bytes, &inlet->frame);
    if (status != OPSTREAM_OK) {
        free(inlet);
        return status;
    }
    *ret_inlet = inlet;
    return OPSTREAM_OK;
}

void inlet_free(struct inlet *inlet) {
    if (inlet == NULL) {
        return;
    }
    if (inlet->fd >= 0) {
        close(inlet->fd);
    }
    frame_free(inlet->frame);
    free(inlet);
}

size_t inlet_fill(const struct inlet *inlet) {
    int bytes = 0;
    return ioctl(inlet->fd, FIONREAD, &bytes) == 0 && bytes > 0 ? (size_t)bytes : 0;
}

/* As long as the pipe takes, at the rate at which it filled, to be an eighth full. A pipe that is over half full is not left alone. */
static uint64_t nap_after(const struct inlet *inlet, size_t fill, uint64_t elapsed_ns) {
    if (fill > inlet->usable_bytes / 2) {
        return 0;
    }
    if (elapsed_ns > NAP_LONGEST_NS * NAP_FILL_DIVISOR) {
        return NAP_LONGEST_NS; /* too long ago to tell a rate */
    }
    uint64_t nap_ns = elapsed_ns * (inlet->usable_bytes / NAP_FILL_DIVISOR) / fill;
    return nap_ns < NAP_SHORTEST_NS ? NAP_SHORTEST_NS : nap_ns > NAP_LONGEST_NS ? NAP_LONGEST_NS : nap_ns;
}

static void count_fill(struct segment_counters *counters, const struct inlet *inlet, size_t fill, uint64_t now_ns) {
    uint64_t window = now_ns / WINDOW_NS, before = cell_get(&counters->pipe_window);
    if (window != before) {
        if (window != before + 1) {
            cell_set(&counters->pipe_high_water_ppm[~window & 1], 0);
        }
        cell_set(&counters->pipe_high_water_ppm[window & 1], 0);
        cell_set(&counters->pipe_window, window);
    }
    uint64_t ppm = fill < inlet->usable_bytes ? fill * PPM / inlet->usable_bytes : PPM;
    if (ppm > cell_get(&counters->pipe_high_water_ppm[window & 1])) {
        cell_set(&counters->pipe_high_water_ppm[window & 1], ppm);
    }
}

size_t inlet_read(struct inlet *inlet, size_t fill, bool keep, uint64_t now_ns, struct segment_counters *counters) {
    cell_u64 *taken = &counters->bytes_taken;
    count_fill(counters, inlet, fill, now_ns);
    size_t room_bytes;
    uint8_t *room = frame_room(inlet->frame, &room_bytes);
    size_t wanted = fill < room_bytes ? fill : room_bytes;
    uint64_t taken_before = cell_get(taken);
    cell_set(taken, taken_before + wanted);
    ssize_t had = read(inlet->fd, room, wanted);
    size_t bytes = had > 0 ? (size_t)had : 0;
    cell_set(taken, taken_before + bytes);
    if (keep) {
        frame_filled(inlet->frame, bytes);
    }
    if (fill <= inlet->usable_bytes / 2) {
        inlet->over_half_since_ns = 0;
    } else if (inlet->over_half_since_ns == 0) {
        inlet->over_half_since_ns = now_ns;
    }
    inlet->nap_ns = nap_after(inlet, fill, now_ns - inlet->read_ns);
    inlet->read_ns = now_ns;
    return bytes;
}

void inlet_is_empty(struct inlet *inlet) {
    inlet->over_half_since_ns = 0;
}

uint64_t inlet_over_half_ns(const struct inlet *inlet, uint64_t now_ns) {
    return inlet->over_half_since_ns == 0 ? 0 : now_ns - inlet->over_half_since_ns;
}
