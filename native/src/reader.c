#include "reader.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "clock.h"
#include "intake.h"
#include "own_table.h"

#define ORDER_TIMEOUT_NS CLOCK_SECOND_NS
#define DRAIN_TIMEOUT_NS CLOCK_SECOND_NS
#define DRAIN_POLL_NS 100000
#define SLEEP_MAX_NS (60 * CLOCK_SECOND_NS)
#define SLEEP_MAX_UNREACHABLE_NS (CLOCK_SECOND_NS / 10) /* the application has closed the control thread's end */

enum order_kind { ORDER_ADD_PIPE, ORDER_RESTART_MODEL, ORDER_FLUSH };

struct order {
    enum order_kind kind;
    uint32_t model_row;      /* of a model */
    struct inlet *inlet;     /* of a pipe, as the next two */
    struct decoder *decoder; /* with the first one, else NULL */
    size_t record_bytes;
};

struct reader {
    const struct vendor *vendor;
    struct intake *intake;
    struct channel channel;
    int segment_fd; /* pages are allocated through it */
    pthread_t thread;
    bool own_table;
    int start_status;
    sem_t started; /* the two before are valid */
    _Atomic bool stopping, pressure;
    size_t record_bytes; /* control thread; 0 = not asked yet */
};

/* ---- The reader thread -------------------------------------------------------------------------------------------------------------- */

static void nap(uint64_t length_ns) {
    struct timespec length = {.tv_sec = (time_t)(length_ns / CLOCK_SECOND_NS), .tv_nsec = (long)(length_ns % CLOCK_SECOND_NS)};
    nanosleep(&length, NULL);
}

static void add_pipe(struct reader *reader, const struct order *order, int fd) {
    if (order->decoder != NULL) {
        intake_set_decoder(reader->intake, order->decoder, order->record_bytes);
    }
    order->inlet->fd = own_table_raise(fd, reader->channel.reader_fd);
    intake_add(reader->intake, order->inlet);
}

static void obey(struct reader *reader) {
    struct order order;
    int fd;
    while (channel_next(&reader->channel, &order, sizeof order, &fd)) {
        switch (order.kind) {
        case ORDER_ADD_PIPE:
            add_pipe(reader, &order, fd);
            break;
        case ORDER_RESTART_MODEL:
            account_restart_model(intake_account(reader->intake), order.model_row);
            break;
        case ORDER_FLUSH:
            intake_flush(reader->intake);
            break;
        }
        channel_done(&reader->channel);
    }
}

/* Asleep, it is woken by a message, which has to be taken before it is looked whether to stop. Awake, it looks at orders only. */
static void read_until_stopped(struct reader *reader) {
    while (!atomic_load_explicit(&reader->stopping, memory_order_acquire)) {
        uint64_t nap_ns = intake_take_all(reader->intake);
        if (nap_ns == UINT64_MAX) {
            intake_wait(reader->intake, reader->channel.reader_fd >= 0 ? SLEEP_MAX_NS : SLEEP_MAX_UNREACHABLE_NS);
            obey(reader);
            continue;
        }
        if (intake_under_pressure(reader->intake) && !atomic_exchange(&reader->pressure, true)) {
            channel_ring(&reader->channel);
        }
        if (nap_ns > 0) {
            nap(nap_ns);
        }
        if (channel_has_order(&reader->channel)) {
            obey(reader);
        }
    }
    intake_flush(reader->intake);
}

/* An application that pins the thread that loads models doesn't mean this one. */
static void use_all_processors(void) {
    cpu_set_t all;
    memset(&all, 0xFF, sizeof all);
    pthread_setaffinity_np(pthread_self(), sizeof all, &all);
}

static void *reader_main(void *context) {
    struct reader *reader = context;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_setname_np(pthread_self(), "opstream-reader");
    use_all_processors();
    int kept[] = {reader->channel.reader_fd, reader->segment_fd};
    reader->own_table = own_table_enter(kept, sizeof kept / sizeof *kept);
    reader->channel.reader_fd = own_table_raise(reader->channel.reader_fd, reader->channel.reader_fd);
    reader->start_status = intake_open(reader->intake, reader->channel.reader_fd);
    int status = reader->start_status;
    sem_post(&reader->started);
    if (status == OPSTREAM_OK) {
        read_until_stopped(reader);
    }
    intake_close(reader->intake);
    channel_close_reader(&reader->channel);
    return NULL;
}

/* ---- The control thread ------------------------------------------------------------------------------------------------------------- */

/* The thread inherits the mask: no handler of the application ever runs in it. */
static int create_thread(struct reader *reader) {
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0) {
        return OPSTREAM_E_MEMORY;
    }
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&reader->thread, &attributes, reader_main, reader);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error == 0 ? OPSTREAM_OK : OPSTREAM_E_MEMORY;
}

static int start_thread(struct reader *reader) {
    int reader_fd = reader->channel.reader_fd;
    int status = create_thread(reader);
    if (status != OPSTREAM_OK) {
        close(reader_fd);
        return status;
    }
    while (sem_wait(&reader->started) != 0 && errno == EINTR) {
    }
    if (reader->own_table) {
        close(reader_fd);
    }
    if (reader->start_status != OPSTREAM_OK) {
        pthread_join(reader->thread, NULL);
    }
    return reader->start_status;
}

int reader_start(const struct vendor *vendor, struct segment_writer *writer, struct reader **ret_reader) {
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return OPSTREAM_E_MEMORY;
    }
    reader->vendor = vendor;
    reader->segment_fd = writer->fd;
    sem_init(&reader->started, 0, 0);
    int status = intake_new(writer, &reader->intake);
    if (status == OPSTREAM_OK) {
        status = channel_open(&reader->channel);
        if (status == OPSTREAM_OK) {
            status = start_thread(reader);
            if (status != OPSTREAM_OK) {
                channel_close_control(&reader->channel);
            }
        }
    }
    if (status != OPSTREAM_OK) {
        intake_free(reader->intake);
        free(reader);
        return status;
    }
    *ret_reader = reader;
    return OPSTREAM_OK;
}

/* The size of a record is the vendor's to say, once it can be asked: before the application's aclInit it can't. */
static int ask_record_bytes(struct reader *reader, struct decoder **ret_decoder) {
    size_t record_bytes = 0;
    *ret_decoder = NULL;
    if (reader->record_bytes != 0) {
        return OPSTREAM_OK;
    }
    if (reader->vendor->get_op_desc_size(&record_bytes) != 0 || record_bytes == 0) {
        return OPSTREAM_E_LIBRARY;
    }
    int status = decoder_new(reader->vendor, record_bytes, ret_decoder);
    if (status == OPSTREAM_OK) {
        reader->record_bytes = record_bytes;
    }
    return status;
}

int reader_add_pipe(struct reader *reader, uint32_t device, int read_fd, size_t capacity_bytes) {
    struct order order = {.kind = ORDER_ADD_PIPE};
    int status = ask_record_bytes(reader, &order.decoder);
    if (status != OPSTREAM_OK) {
        return status;
    }
    order.record_bytes = reader->record_bytes;
    status = inlet_new(reader->vendor, order.record_bytes, device, capacity_bytes, &order.inlet);
    if (status == OPSTREAM_OK) {
        status = channel_order(&reader->channel, &order, sizeof order, read_fd, ORDER_TIMEOUT_NS);
    }
    if (status != OPSTREAM_OK && status != OPSTREAM_E_BUSY) { /* when busy, the reader will have them yet */
        inlet_free(order.inlet);
        if (order.decoder != NULL) {
            decoder_free(order.decoder);
            reader->record_bytes = 0;
        }
    }
    return status;
}

void reader_map_model(struct reader *reader, uint32_t model_id, uint32_t model_row, uint64_t subscribed_ns) {
    struct order order = {.kind = ORDER_RESTART_MODEL, .model_row = model_row};
    account_map_model(intake_account(reader->intake), model_id, model_row, subscribed_ns);
    channel_order(&reader->channel, &order, sizeof order, -1, ORDER_TIMEOUT_NS);
}

int reader_flush(struct reader *reader) {
    struct order order = {.kind = ORDER_FLUSH};
    return channel_order(&reader->channel, &order, sizeof order, -1, ORDER_TIMEOUT_NS);
}

int reader_pressure_fd(const struct reader *reader) {
    return channel_bell_fd(&reader->channel);
}

bool reader_pressure(struct reader *reader) {
    channel_silence(&reader->channel);
    return atomic_exchange(&reader->pressure, false);
}

void reader_drain_only(struct reader *reader) {
    uint64_t deadline_ns = clock_monotonic_ns() + DRAIN_TIMEOUT_NS;
    intake_drain_only(reader->intake);
    while (intake_is_decoding(reader->intake) && clock_monotonic_ns() < deadline_ns) {
        nap(DRAIN_POLL_NS);
    }
}

void reader_on_first_record(struct reader *reader, void (*callback)(void *), void *context) {
    intake_on_first_record(reader->intake, callback, context);
}

void reader_stop(struct reader *reader) {
    if (reader == NULL) {
        return;
    }
    atomic_store_explicit(&reader->stopping, true, memory_order_release);
    channel_wake(&reader->channel);
    pthread_join(reader->thread, NULL);
    channel_close_control(&reader->channel);
    intake_free(reader->intake);
    sem_destroy(&reader->started);
    free(reader);
}
