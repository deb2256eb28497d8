#include "intake.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "own_table.h"

#define INLETS_MAX 128u
#define RECORDS_PER_CLOCK 256u /* a batch's clock is read again after so many */
#define IDLE_NS CLOCK_SECOND_NS
#define PRESSURE_NS CLOCK_SECOND_NS
#define CPU_PERIOD_NS UINT64_C(100000000)

struct intake {
    struct segment_writer *writer;
    struct segment_counters *counters;
    struct account *account;
    struct decoder *decoder; /* NULL until the first pipe */
    size_t record_bytes;
    int epoll_fd;
    struct inlet *inlets[INLETS_MAX];
    size_t inlet_count;
    uint64_t now_ns;
    uint64_t arrival_ns; /* of the latest bytes */
    uint64_t cpu_read_ns;
    bool restless; /* bytes have come since it was idle last */
    bool first_told;
    /* other threads too */
    _Atomic bool draining;
    _Atomic bool decoding; /* a getter may be running */
    void (*_Atomic first_record)(void *);
    void *first_record_context;
};

int intake_new(struct segment_writer *writer, struct intake **ret_intake) {
    struct intake *intake = calloc(1, sizeof *intake);
    if (intake == NULL) {
        return OPSTREAM_E_MEMORY;
    }
    intake->writer = writer;
    intake->counters = &writer->base->counters;
    intake->epoll_fd = -1;
    int status = account_new(writer, &intake->account);
    if (status != OPSTREAM_OK) {
        free(intake);
        return status;
    }
    *ret_intake = intake;
    return OPSTREAM_OK;
}

void intake_free(struct intake *intake) {
    if (intake != NULL) {
        decoder_free(intake->decoder);
        account_free(intake->account);
        free(intake);
    }
}

struct account *intake_account(const struct intake *intake) {
    return intake->account;
}

void intake_on_first_record(struct intake *intake, void (*callback)(void *), void *context) {
    intake->first_record_context = context;
    atomic_store_explicit(&intake->first_record, callback, memory_order_release);
}

/* ---- Counting ------------------------------------------------------------------------------------------------------------------- */

static uint64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * CLOCK_SECOND_NS + (uint64_t)now.tv_nsec;
}

static void look_at_clock(struct intake *intake) {
    intake->now_ns = clock_monotonic_ns();
    account_set_time(intake->account, intake->now_ns, read_clock(CLOCK_REALTIME));
}

/* The thread's CPU time is a system call, and so not had at every commit. */
static void count_cpu(struct intake *intake) {
    cell_set(&intake->counters->reader_cpu_ns, read_clock(CLOCK_THREAD_CPUTIME_ID));
    intake->cpu_read_ns = intake->now_ns;
}

static void commit(struct intake *intake) {
    if (intake->decoder != NULL) {
        cell_set(&intake->counters->reader_path, decoder_path(intake->decoder));
    }
    if (intake->now_ns - intake->cpu_read_ns >= CPU_PERIOD_NS) {
        count_cpu(intake);
    }
    segment_commit(intake->writer, account_held(intake->account));
}

static __attribute__((noinline)) void count_some_loss(struct intake *intake, struct frame_loss *loss) {
    struct segment_totals *live = &intake->counters->live;
    cell_add(&intake->counters->bytes_settled, loss->corrupt_records * intake->record_bytes + loss->discarded_bytes);
    cell_add(&live->records_read, loss->corrupt_records);
    cell_add(&live->records_corrupt, loss->corrupt_records);
    cell_add(&live->bytes_discarded, loss->discarded_bytes);
    *loss = (struct frame_loss){0};
}

static inline void count_loss(struct intake *intake, struct frame_loss *loss) {
    if ((loss->corrupt_records | loss->discarded_bytes) != 0) {
        count_some_loss(intake, loss);
    }
}

static inline void count_read(struct intake *intake) {
    struct segment_counters *counters = intake->counters;
    cell_add(&counters->live.records_read, 1);
    cell_add(&counters->bytes_settled, intake->record_bytes);
}

static void count_capacity(struct intake *intake) {
    uint64_t smallest_bytes = UINT64_MAX;
    for (size_t i = 0; i < intake->inlet_count; i++) {
        if (intake->inlets[i]->capacity_bytes < smallest_bytes) {
            smallest_bytes = intake->inlets[i]->capacity_bytes;
        }
    }
    if (intake->inlet_count > 0) {
        cell_set(&intake->counters->pipe_capacity_bytes, smallest_bytes);
    }
}

/* ---- From a pipe to the account --------------------------------------------------------------------------------------------------- */

/* Between these two the vendor's functions may be called. Sequentially consistent with intake_drain_only: either that sees `decoding`, or
 * this sees `draining`. */
static bool begin_decoding(struct intake *intake) {
    atomic_store(&intake->decoding, true);
    if (!atomic_load(&intake->draining)) {
        return true;
    }
    atomic_store(&intake->decoding, false);
    return false;
}

static void end_decoding(struct intake *intake) {
    atomic_store_explicit(&intake->decoding, false, memory_order_release);
}

static __attribute__((noinline, cold)) void tell_first_record(struct intake *intake) {
    void (*callback)(void *) = atomic_load_explicit(&intake->first_record, memory_order_acquire);
    intake->first_told = true;
    if (callback != NULL) {
        callback(intake->first_record_context);
    }
}

static inline void decode_one(struct intake *intake, struct inlet *inlet, const uint8_t *record, const struct text_guess *guess) {
    struct operator_run run;
    enum decode_result result = decoder_decode(intake->decoder, record, guess, &run);
    if (result == DECODE_CORRUPT) {
        frame_reject(inlet->frame);
        return;
    }
    count_read(intake);
    if (result == DECODE_NAME) {
        cell_add(&intake->counters->live.records_name, 1);
        return;
    }
    if (!intake->first_told) {
        tell_first_record(intake);
    }
    account_run(intake->account, &inlet->clock, &run);
}

static void decode_all(struct intake *intake, struct inlet *inlet) {
    const struct text_guess *guess = account_guess(intake->account);
    struct frame_loss loss = {0};
    const uint8_t *record;
    for (uint32_t n = 1; (record = frame_next(inlet->frame, &loss)) != NULL; n++) {
        if (atomic_load_explicit(&intake->draining, memory_order_relaxed)) {
            break;
        }
        count_loss(intake, &loss);
        decode_one(intake, inlet, record, guess);
        if (n % RECORDS_PER_CLOCK == 0) {
            look_at_clock(intake);
        }
    }
    count_loss(intake, &loss);
}

/* One batch: at most what fits into the frame. */
static size_t take(struct intake *intake, struct inlet *inlet, size_t fill) {
    look_at_clock(intake);
    bool decoding = begin_decoding(intake);
    if (!decoding) {
        struct frame_loss uncounted = {0};
        frame_finish(inlet->frame, &uncounted); /* what was being decoded must not stand in the way of what is read */
    }
    size_t bytes = inlet_read(inlet, fill, decoding, intake->now_ns, intake->counters);
    intake->arrival_ns = intake->now_ns;
    intake->restless = true;
    if (decoding) {
        decode_all(intake, inlet);
        end_decoding(intake);
        commit(intake);
    }
    return bytes;
}

uint64_t intake_take_all(struct intake *intake) {
    uint64_t nap_ns = UINT64_MAX;
    for (size_t i = 0; i < intake->inlet_count; i++) {
        struct inlet *inlet = intake->inlets[i];
        size_t fill = inlet_fill(inlet);
        if (fill > 0) {
            take(intake, inlet, fill);
            nap_ns = inlet->nap_ns < nap_ns ? inlet->nap_ns : nap_ns;
        } else {
            inlet_is_empty(inlet);
        }
    }
    return nap_ns;
}

/* Nothing has come for a while, or nothing more is to come: what waits for something later needn't. */
static void come_to_rest(struct intake *intake) {
    struct frame_loss loss = {0};
    for (size_t i = 0; i < intake->inlet_count; i++) {
        frame_idle(intake->inlets[i]->frame, &loss);
    }
    count_loss(intake, &loss);
    account_settle(intake->account);
    count_cpu(intake);
    intake->restless = false;
}

/* ---- Pipes ------------------------------------------------------------------------------------------------------------------------ */

static void remove_inlet(struct intake *intake, size_t i) {
    struct inlet *inlet = intake->inlets[i];
    struct frame_loss loss = {0};
    frame_finish(inlet->frame, &loss);
    if (!atomic_load_explicit(&intake->draining, memory_order_relaxed)) { /* else it is what nobody decoded, not what nobody could */
        count_loss(intake, &loss);
    }
    account_release(intake->account);
    epoll_ctl(intake->epoll_fd, EPOLL_CTL_DEL, inlet->fd, NULL);
    inlet_free(inlet);
    intake->inlets[i] = intake->inlets[--intake->inlet_count];
    count_capacity(intake);
}

/* Those of the same device that were replaced before, and have nothing more. */
static void replace_earlier(struct intake *intake, uint32_t device) {
    for (size_t i = intake->inlet_count; i-- > 0;) {
        struct inlet *inlet = intake->inlets[i];
        if (inlet->device == device && inlet->earlier && inlet_fill(inlet) == 0) {
            remove_inlet(intake, i);
        } else if (inlet->device == device) {
            inlet->earlier = true;
        }
    }
}

void intake_set_decoder(struct intake *intake, struct decoder *decoder, size_t record_bytes) {
    intake->decoder = decoder;
    intake->record_bytes = record_bytes;
    cell_set(&intake->counters->record_bytes, record_bytes);
}

void intake_add(struct intake *intake, struct inlet *inlet) {
    replace_earlier(intake, inlet->device);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = inlet};
    if (intake->inlet_count == INLETS_MAX || epoll_ctl(intake->epoll_fd, EPOLL_CTL_ADD, inlet->fd, &event) != 0) {
        inlet_free(inlet);
        return;
    }
    intake->inlets[intake->inlet_count++] = inlet;
    count_capacity(intake);
}

static void remove_ended(struct intake *intake, const struct inlet *inlet) {
    for (size_t i = 0; i < intake->inlet_count; i++) {
        if (intake->inlets[i] == inlet && inlet_fill(inlet) == 0) {
            remove_inlet(intake, i);
            return;
        }
    }
}

/* ---- Waiting ------------------------------------------------------------------------------------------------------------------------ */

int intake_open(struct intake *intake, int wake_fd) {
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) {
        return OPSTREAM_E_SYSTEM;
    }
    intake->epoll_fd = own_table_raise(epoll_fd, wake_fd);
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(intake->epoll_fd, EPOLL_CTL_ADD, wake_fd, &event) == 0 ? OPSTREAM_OK : OPSTREAM_E_SYSTEM;
}

void intake_close(struct intake *intake) {
    while (intake->inlet_count > 0) {
        remove_inlet(intake, intake->inlet_count - 1);
    }
    if (intake->epoll_fd >= 0) {
        close(intake->epoll_fd);
    }
    commit(intake);
}

static int until_wake_ms(const struct intake *intake, uint64_t longest_ns) {
    uint64_t wake_ns = intake->now_ns + longest_ns;
    if (intake->restless && intake->arrival_ns + IDLE_NS < wake_ns) {
        wake_ns = intake->arrival_ns + IDLE_NS;
    }
    if (account_held(intake->account) > 0 && account_held_until_ns(intake->account) < wake_ns) {
        wake_ns = account_held_until_ns(intake->account);
    }
    return wake_ns <= intake->now_ns ? 0 : (int)((wake_ns - intake->now_ns) / 1000000 + 1);
}

void intake_wait(struct intake *intake, uint64_t longest_ns) {
    struct epoll_event events[16];
    look_at_clock(intake);
    int count = epoll_wait(intake->epoll_fd, events, sizeof events / sizeof *events, until_wake_ms(intake, longest_ns));
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr != NULL && (events[i].events & EPOLLHUP)) {
            remove_ended(intake, events[i].data.ptr);
        }
    }
    look_at_clock(intake);
    if (intake->restless && intake->now_ns - intake->arrival_ns >= IDLE_NS) {
        come_to_rest(intake);
    }
    commit(intake);
}

void intake_flush(struct intake *intake) {
    for (size_t i = 0; i < intake->inlet_count; i++) {
        size_t left = inlet_fill(intake->inlets[i]);
        while (left > 0) {
            size_t bytes = take(intake, intake->inlets[i], inlet_fill(intake->inlets[i]));
            left = bytes > 0 && bytes < left ? left - bytes : 0;
        }
    }
    look_at_clock(intake);
    account_release(intake->account);
    come_to_rest(intake);
    commit(intake);
}

/* ---- From outside ------------------------------------------------------------------------------------------------------------------- */

bool intake_under_pressure(const struct intake *intake) {
    for (size_t i = 0; i < intake->inlet_count; i++) {
        /* Nobody writes into an earlier one any more. */
        if (!intake->inlets[i]->earlier && inlet_over_half_ns(intake->inlets[i], intake->now_ns) >= PRESSURE_NS) {
            return true;
        }
    }
    return false;
}

void intake_drain_only(struct intake *intake) {
    atomic_store(&intake->draining, true);
}

bool intake_is_decoding(const struct intake *intake) {
    return atomic_load(&intake->decoding);
}
