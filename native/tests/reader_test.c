#include "reader.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "clock.h"
#include "rig.h"

#define EXECUTIONS 2000u
#define OPERATORS 3u

static struct rig rig;
static struct segment_writer writer;
static struct reader *reader;
static uint32_t model_id, model_row;
static int write_end; /* the vendor's, or the test's own */

static const char workload[] = "op\t0\t1000\tConv2D\tlayer/0\nop\t1000\t2500\tConv2D\tlayer/1\nop\t3000\t70000\tMatMul\thead\n";
static const char *const names[OPERATORS] = {"layer/0", "layer/1", "head"};
static const uint64_t durations_ns[OPERATORS] = {1000, 2500, 70000};

static const struct segment_totals *committed(void) {
    return &writer.base->counters.committed;
}

static void add_pipe(int size_bytes) {
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    CHECK(fcntl(ends[0], F_SETPIPE_SZ, size_bytes) >= 0);
    CHECK_EQ_INT(reader_add_pipe(reader, 0, ends[0], (size_t)fcntl(ends[0], F_GETPIPE_SZ)), OPSTREAM_OK);
    close(ends[0]);
    write_end = ends[1];
}

static void set_up(void) {
    struct segment_identity identity = {.kind = OPSTREAM_KIND_AGENT, .app = "test"};
    rig = rig_open();
    CHECK_EQ_INT(segment_create(&identity, 256, &writer), OPSTREAM_OK);
    CHECK_EQ_INT(reader_start(&rig.vendor, &writer, &reader), OPSTREAM_OK);
    model_id = rig_load(&rig, workload);
    model_row = segment_model_row(&writer, model_id, 0, "m");
    reader_map_model(reader, model_id, model_row, clock_monotonic_ns());
}

static void tear_down(void) {
    reader_stop(reader);
    segment_free(&writer);
}

/* On a loaded machine a full pipe may take longer than one call waits. */
static void flush(void) {
    int status;
    do {
        status = reader_flush(reader);
    } while (status == OPSTREAM_E_BUSY);
    CHECK_EQ_INT(status, OPSTREAM_OK);
}

/* Executes with a subscription through the reader's pipe, and has everything counted. */
static void execute_subscribed(unsigned executions) {
    rig_subscribe(&rig, model_id, &write_end);
    rig_execute(&rig, model_id, executions);
    CHECK_EQ_INT(rig.vendor.model_unsubscribe(model_id), 0);
    flush();
}

static void await_read(uint64_t records) {
    for (int ms = 0; cell_get(&committed()->records_read) < records; ms++) {
        CHECK(ms < RIG_PATIENCE_MS);
        poll(NULL, 0, 1);
    }
    CHECK_EQ_U64(cell_get(&committed()->records_read), records);
}

static uint64_t count_of(const struct segment_histogram *histogram) {
    uint64_t count = 0;
    for (size_t i = 0; i < OPSTREAM_CELLS; i++) {
        count += cell_get(&histogram->cells[i]);
    }
    return count;
}

static uint64_t rejected(void) {
    return cell_get(&committed()->records_corrupt) + cell_get(&committed()->records_name) + cell_get(&committed()->records_time);
}

static void check_balance(uint64_t records) {
    const struct segment_counters *counters = &writer.base->counters;
    CHECK_EQ_U64(cell_get(&committed()->records_read), records);
    CHECK_EQ_U64(cell_get(&committed()->records_recorded) + rejected(), records);
    CHECK_EQ_U64(cell_get(&counters->bytes_taken), cell_get(&counters->bytes_settled));
    CHECK_EQ_U64(cell_get(&counters->bytes_settled), 80 * records + cell_get(&committed()->bytes_discarded));
}

static const struct segment_series *series_of(const char *name) {
    for (uint64_t row = 0; row < cell_get(&writer.base->used[TABLE_SERIES - 1].rows); row++) {
        if (strcmp(writer.strings + 8 * (uint64_t)writer.series[row].name + sizeof(uint32_t), name) == 0) {
            return &writer.series[row];
        }
    }
    CHECK_FAIL("no series has the name %s", name);
}

static void test_exact(void) {
    set_up();
    add_pipe(1 << 20);
    execute_subscribed(EXECUTIONS);
    check_balance((OPERATORS + 1) * EXECUTIONS);
    CHECK_EQ_U64(rejected(), 0);
    CHECK_EQ_U64(cell_get(&writer.base->used[TABLE_SERIES - 1].rows), OPERATORS);
    for (size_t i = 0; i < OPERATORS; i++) {
        const struct segment_series *series = series_of(names[i]);
        CHECK_EQ_U64(count_of(&series->duration), EXECUTIONS);
        CHECK_EQ_U64(cell_get(&series->duration.sum_ns), durations_ns[i] * EXECUTIONS);
        CHECK_EQ_U64(series->model_row, model_row);
    }
    CHECK_EQ_U64(count_of(&writer.models[model_row].executions), EXECUTIONS);
    CHECK_EQ_U64(count_of(&writer.base->delay), OPERATORS * EXECUTIONS);
    CHECK_EQ_U64(cell_get(&writer.base->counters.reader_path), 1);
    CHECK_EQ_U64(cell_get(&writer.base->counters.pipe_capacity_bytes), 1 << 20);
    CHECK_EQ_U64(cell_get(&writer.base->counters.record_bytes), 80);
    CHECK(cell_get(&writer.base->counters.reader_cpu_ns) > 0);
    uint64_t window = cell_get(&writer.base->counters.pipe_window);
    CHECK(cell_get(&writer.base->counters.pipe_high_water_ppm[window & 1]) > 0);
    CHECK_EQ_U64(rig_journal("strings_read"), rig_journal("strings_made"));
    tear_down();
}

/* The same device's next pipe, and the earlier one's end. */
static void test_again(void) {
    set_up();
    for (unsigned round = 1; round <= 5; round++) {
        add_pipe(1 << 16);
        execute_subscribed(100);
        check_balance((OPERATORS + 1) * 100 * round);
    }
    CHECK_EQ_U64(rejected(), 0);
    tear_down();
}

/* What the simulator did to the stream is what was counted, each under its reason. */
static void test_faults(void) {
    set_up();
    add_pipe(1 << 20);
    execute_subscribed(EXECUTIONS);
    uint64_t corrupt = rig_journal("fault.corrupt"), truncated = rig_journal("fault.truncated");
    uint64_t made = rig_journal("records_made");
    CHECK_EQ_U64(made, (OPERATORS + 1) * EXECUTIONS);
    check_balance(made - truncated);
    CHECK_EQ_U64(cell_get(&committed()->records_corrupt), corrupt);
    CHECK_EQ_U64(cell_get(&committed()->records_name), rig_journal("fault.getter-refusal"));
    CHECK_EQ_U64(cell_get(&committed()->records_time), rig_journal("fault.end-before-start"));
    CHECK_EQ_INT(cell_get(&committed()->bytes_discarded) > 0, truncated > 0);
    CHECK(corrupt + truncated + rig_journal("fault.partial-write") + rejected() > 0);
    /* No string stays with the vendor but those that it can't be asked for. */
    uint64_t unreadable = corrupt + truncated + rig_journal("fault.getter-refusal");
    CHECK_EQ_U64(rig_journal("strings_made") - rig_journal("strings_read"), 2 * unreadable);
    tear_down();
}

/* Writes everything, however little the pipe takes at a time. */
static void write_all(const uint8_t *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = write(write_end, bytes, count);
        CHECK(written > 0);
        bytes += written;
        count -= (size_t)written;
    }
}

/* Byte by byte, with nothing but the reader's own waking; a corrupt record that nothing follows ends after a second of silence. */
static void test_trickle(void) {
    size_t bytes;
    set_up();
    uint8_t *records = rig_records(&rig, model_id, 5, &bytes);
    add_pipe(1 << 16);
    for (size_t i = 0; i < bytes; i++) {
        write_all(records + i, 1);
    }
    await_read(bytes / 80);
    records[40] ^= 1;
    write_all(records, 80);
    await_read(bytes / 80 + 1);
    CHECK_EQ_U64(cell_get(&committed()->records_corrupt), 1);
    check_balance(bytes / 80 + 1);
    /* The rest of a record that nobody wrote is discarded with the pipe. */
    write_all(records, 33);
    close(write_end);
    for (int ms = 0; cell_get(&committed()->bytes_discarded) == 0; ms++) {
        CHECK(ms < RIG_PATIENCE_MS);
        poll(NULL, 0, 1);
    }
    CHECK_EQ_U64(cell_get(&committed()->bytes_discarded), 33);
    check_balance(bytes / 80 + 1);
    free(records);
    tear_down();
}

/* The model is subscribed anew after its device was reset, and the device's time is less than it was: nothing is late for that. */
static void test_clock_begins_again(void) {
    uint8_t *records[2];
    size_t bytes[2];
    set_up();
    for (int i = 0; i < 2; i++) {
        records[i] = rig_records(&rig, model_id, 100, &bytes[i]);
    }
    const struct segment_model *model = &writer.models[model_row];
    uint64_t busy_ns = 0;
    for (int i = 1; i >= 0; i--) {
        reader_map_model(reader, model_id, model_row, clock_monotonic_ns());
        add_pipe(1 << 20);
        write_all(records[i], bytes[i]);
        flush();
        CHECK_EQ_U64(cell_get(&model->late_intervals), 0);
        CHECK(cell_get(&model->busy_ns) > busy_ns);
        busy_ns = cell_get(&model->busy_ns);
        close(write_end);
        free(records[i]);
    }
    CHECK_EQ_U64(cell_get(&committed()->records_recorded), (bytes[0] + bytes[1]) / 80);
    tear_down();
}

/* Records of nobody's model, and a first record of which somebody wants to know. */
static void note(void *context) {
    ++*(_Atomic int *)context;
}

static void test_first_record(void) {
    static _Atomic int told;
    set_up();
    reader_on_first_record(reader, note, &told);
    reader_map_model(reader, model_id, 0, clock_monotonic_ns());
    add_pipe(1 << 20);
    CHECK_EQ_INT(told, 0);
    execute_subscribed(100);
    CHECK_EQ_INT(told, 1);
    check_balance((OPERATORS + 1) * 100);
    CHECK_EQ_U64(cell_get(&committed()->records_overflowed), (OPERATORS + 1) * 100);
    CHECK_EQ_U64(count_of(&writer.models[0].executions), 100);
    tear_down();
}

/* From then on the vendor isn't asked for anything any more, and yet never has to wait. */
static void test_drain_only(void) {
    set_up();
    add_pipe(1 << 16);
    execute_subscribed(100);
    reader_drain_only(reader);
    add_pipe(1 << 16);
    uint64_t calls = rig_journal("getter_calls"), taken = cell_get(&writer.base->counters.bytes_taken);
    execute_subscribed(EXECUTIONS);
    CHECK_EQ_U64(rig_journal("getter_calls"), calls);
    CHECK_EQ_U64(cell_get(&committed()->records_read), (OPERATORS + 1) * 100);
    CHECK_EQ_U64(cell_get(&writer.base->counters.bytes_taken), taken + (OPERATORS + 1) * EXECUTIONS * 80);
    tear_down();
}

static _Atomic bool enough;
static uint8_t *flood;
static size_t flood_bytes;
static uint64_t floods;

static void *write_until_enough(void *unused) {
    for (; !enough; floods++) {
        write_all(flood, flood_bytes);
    }
    return unused;
}

/* Who writes a hundred records at once is always ahead of who decodes them one by one: the pipe is over half whenever it is looked at. */
static void test_pressure(void) {
    pthread_t thread;
    set_up();
    flood = rig_records(&rig, model_id, 100, &flood_bytes);
    add_pipe(1 << 20);
    CHECK(!reader_pressure(reader));
    CHECK_EQ_INT(pthread_create(&thread, NULL, write_until_enough, NULL), 0);
    struct pollfd rung = {reader_pressure_fd(reader), POLLIN, 0};
    CHECK_EQ_INT(poll(&rung, 1, RIG_PATIENCE_MS), 1);
    CHECK(reader_pressure(reader));
    enough = true;
    pthread_join(thread, NULL);
    flush();
    reader_pressure(reader);
    CHECK_EQ_INT(poll(&rung, 1, 0), 0);
    check_balance(floods * (flood_bytes / 80));
    free(flood);
    tear_down();
}

/* The application closes everything that it can see, and reuses every number: the reader goes on, and touches nothing of it. */
static void test_own_table(void) {
    size_t bytes;
    set_up();
    uint8_t *records = rig_records(&rig, model_id, 100, &bytes);
    add_pipe(1 << 20);
    write_all(records, 80);
    await_read(1);
    int kept = write_end, highest = reader_pressure_fd(reader);
    int strange = open("/dev/null", O_RDWR);
    CHECK(strange >= 0);
    for (int fd = 3; fd <= highest + 8; fd++) {
        if (fd != kept && fd != strange) {
            CHECK_EQ_INT(dup2(strange, fd), fd);
        }
    }
    write_all(records + 80, bytes - 80);
    await_read(bytes / 80);
    check_balance(bytes / 80);
    CHECK_EQ_U64(cell_get(&committed()->records_overflowed), 0); /* there is still memory for new rows */
    CHECK_EQ_INT(reader_flush(reader), OPSTREAM_E_SYSTEM);
    free(records);
    tear_down();
}

/* From now on the kernel answers this system call with an error, as an old one or a container's does. */
static void deny(unsigned system_call, unsigned error) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, system_call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

/* In a container. */
static void test_own_table_without_unshare(void) {
    deny(SYS_unshare, EPERM);
    test_own_table();
}

/* Without a table of its own the reader does all the same, in the process's. */
static void test_shared_table(void) {
    deny(SYS_unshare, EPERM);
    deny(SYS_close_range, ENOSYS);
    test_again();
}

/* Kernels before 5.9: the inherited descriptors are closed one by one. The end of a pipe that only the reader could keep open shows it. */
static void test_old_kernel(void) {
    int ends[2];
    char byte;
    deny(SYS_close_range, ENOSYS);
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    set_up();
    close(ends[1]);
    CHECK_EQ_INT(read(ends[0], &byte, 1), 0);
    add_pipe(1 << 16);
    execute_subscribed(100);
    check_balance((OPERATORS + 1) * 100);
    tear_down();
}

int main(void) {
    reader_stop(NULL);
    rig_case(test_exact, "");
    rig_case(test_again, "");
    rig_case(test_faults, "corrupt=0.05");
    rig_case(test_faults, "truncated=0.05");
    rig_case(test_faults, "partial-write=count:5@1ms");
    rig_case(test_faults, "getter-refusal=0.05");
    rig_case(test_faults, "end-before-start=0.05");
    rig_case(test_faults, "corrupt=0.03,truncated=0.03,getter-error=0.03,getter-refusal=0.03,end-before-start=0.03,late=0.01,"
                          "partial-write=count:3@1ms");
    rig_case(test_trickle, "");
    rig_case(test_clock_begins_again, "");
    rig_case(test_first_record, "");
    rig_case(test_drain_only, "");
    rig_case(test_pressure, "");
    rig_case(test_own_table, "");
    rig_case(test_own_table_without_unshare, "");
    rig_case(test_shared_table, "");
    rig_case(test_old_kernel, "");
    return 0;
}
