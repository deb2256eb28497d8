/* layout.h: what lies where in a segment, version 1.
 *
 * Little-endian; every block starts on a cache line, and every cache line has one writing thread, named in its comment: relaxed loads and
 * stores, a row is published by a release of its table's `used` and read by an acquire. A reader needs to know the version and the header's
 * directory; offsets of tables and rows' sizes are in it. Sizes are fixed when the segment is made.
 *
 *   header      identity, directory                          written once, before the segment is handed out
 *   counters    the loss budget, live and committed          reader thread
 *   delay       one histogram                                reader thread
 *   errors      failed subscribe calls by code               control thread
 *   MODELS      row m: a model (labels device and name)      its control lines: control thread; its other lines: reader thread
 *   OTHERS      row m: operators of model m that have no row of their own left        reader thread
 *   SERIES      one row per (model, type, name)              reader thread
 *   STRINGS     types and names, each u32 length, bytes, NUL, padded to 8             reader thread
 */
#ifndef OPSTREAM_LAYOUT_H
#define OPSTREAM_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#include "opstream.h"

#define SEGMENT_MAGIC UINT64_C(0x31304d525453504f) /* "OPSTRM01" */
#define SEGMENT_VERSION 1u
#define CACHE_LINE 64

#define MODELS_CAPACITY 64u /* row 0 is nobody's: records of a model id that was never subscribed, or of one too many */
#define SERIES_CAPACITY_MIN 64u
#define SERIES_CAPACITY_MAX 24576u    /* a segment of 59 MiB: within what the daemon takes unless told otherwise, 64 MiB */
#define STRING_BYTES_MAX 1024u        /* longer operator names and types are cut here, and end in 16 hex digits of their hash */
#define STRINGS_BYTES_PER_SERIES 256u /* seen: 20 to 90 */

typedef _Atomic uint64_t cell_u64;
typedef _Atomic uint32_t cell_u32;

/* A histogram of durations: `created_wall_ns` is 0 until its first record, and stays. */
struct segment_histogram {
    cell_u64 created_wall_ns;
    cell_u64 sum_ns;
    cell_u64 cells[OPSTREAM_CELLS];
};

enum segment_table_kind { TABLE_MODELS = 1, TABLE_OTHERS = 2, TABLE_SERIES = 3, TABLE_STRINGS = 4 };
#define SEGMENT_TABLES 4u

struct segment_table {
    uint32_t kind;
    uint32_t row_bytes; /* STRINGS: 1 */
    uint64_t offset;    /* from the segment's start, multiple of 4096 */
    uint64_t capacity;  /* rows */
};

/* How many rows of a table are filled. One line each, as the tables have different writers. OTHERS has MODELS' number. */
struct segment_used {
    _Alignas(CACHE_LINE) cell_u64 rows;
};

struct segment_identity {
    uint8_t uuid[16]; /* random, from getrandom */
    uint64_t created_wall_ns;
    uint64_t created_monotonic_ns;
    uint32_t kind; /* enum opstream_kind */
    uint32_t pid;
    char app[128];
    char labels[512];
    char hosted_name[64];
    char config_digest[40];
};

struct segment_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes; /* sizeof (struct segment): everything before the first table */
    uint64_t segment_bytes;
    uint32_t cells;  /* OPSTREAM_CELLS */
    uint32_t tables; /* SEGMENT_TABLES */
    struct segment_table directory[SEGMENT_TABLES];
    struct segment_identity identity;
    uint64_t bounds_ns[OPSTREAM_CELLS]; /* largest whole nanosecond of each cell; UINT64_MAX for the last: a reader needs to know nothing */
};

/* Running totals. `live` is written as things happen; `committed` is a copy of a moment at which read = recorded + rejected. */
struct segment_totals {
    cell_u64 records_read; /* framed as a record */
    cell_u64 records_recorded;
    cell_u64 records_overflowed;
    cell_u64 records_corrupt;
    cell_u64 records_name;
    cell_u64 records_time;
    cell_u64 bytes_discarded;
    cell_u64 unused;
};

struct segment_counters {
    /* Of a living publisher: sequence lock (odd while the reader thread is committing) over `committed`. */
    _Alignas(CACHE_LINE) cell_u64 sequence;
    struct segment_totals committed;
    /* Of a dead publisher: the last word. What was taken from the pipe, but is in no total yet, is (bytes_taken - bytes_settled) /
     * record_bytes whole records; what was read (framed or held back) but not settled is live.records_read - recorded - rejected. Together:
     * interrupted. */
    _Alignas(CACHE_LINE) struct segment_totals live;
    _Alignas(CACHE_LINE) cell_u64 bytes_taken; /* from the pipes, ever */
    cell_u64 bytes_settled;                    /* of these, framed as records or discarded */
    cell_u64 record_bytes;                     /* aclprofGetOpDescSize; 0 = not asked yet */
    cell_u64 reader_cpu_ns;
    cell_u64 reader_path; /* as opstream_counters */
    cell_u64 time_unit;   /* as opstream_counters */
    cell_u64 pipe_capacity_bytes;
    _Alignas(CACHE_LINE) cell_u64 pipe_window; /* CLOCK_MONOTONIC / WINDOW_NS of the two maxima: [window & 1] is the present one's */
    cell_u64 pipe_high_water_ppm[2];
};

#define ERROR_OTHER UINT64_C(0xffffffff) /* as acl_error: -1 */

struct segment_error {
    cell_u64 acl_error; /* 0 = free; the last one's is ERROR_OTHER */
    cell_u64 count;
};

/* Before the tables. */
struct segment {
    struct segment_header header;
    _Alignas(CACHE_LINE) struct segment_used used[SEGMENT_TABLES]; /* MODELS: control thread; SERIES, STRINGS: reader thread */
    struct segment_counters counters;
    _Alignas(CACHE_LINE) struct segment_histogram delay;
    _Alignas(CACHE_LINE) struct segment_error errors[OPSTREAM_SUBSCRIBE_ERRORS_MAX]; /* control thread; the last one takes further codes */
};

enum segment_model_state { MODEL_UNSUBSCRIBED = 0, MODEL_SUBSCRIBED = 1, MODEL_PAUSED = 2, MODEL_FAILED = 3 };

#define SUBSCRIBED_RUNNING (UINT64_C(1) << 63)
#define DEVICE_OTHER UINT32_MAX /* of row 0, which is nobody's */

struct segment_model {
    /* control thread */
    char name[256];  /* written before the row is published */
    uint32_t device; /* the same */
    uint32_t reserved;
    cell_u32 model_id; /* the present one; a model that is loaded again under the same device and name takes its row again */
    cell_u32 state;    /* enum segment_model_state */
    /* Time subscribed, in one word: while subscribed, SUBSCRIBED_RUNNING | (CLOCK_MONOTONIC now - what had been summed up), so that now -
     * it is the sum; else the sum. */
    cell_u64 subscribed;
    cell_u64 subscriptions; /* times subscribed */
    /* reader thread */
    _Alignas(CACHE_LINE) cell_u64 last_execution_wall_ns; /* wall clock when its newest record was counted */
    cell_u64 busy_ns;
    cell_u64 gap_ns;
    cell_u64 late_intervals;
    cell_u64 busy_created_wall_ns; /* first record of the model */
    _Alignas(CACHE_LINE) struct segment_histogram executions;
};

/* A longest run is kept for the present window and the one before; a reader lets older ones expire. */
#define WINDOW_NS UINT64_C(60000000000)

struct segment_series {
    /* written before the row is published */
    _Alignas(CACHE_LINE) uint64_t hash; /* of (model row, type, name): private to the publisher */
    uint32_t model_row;
    uint32_t type; /* offset / 8 of a string in STRINGS; OTHERS: unused, it is "(other)" */
    uint32_t name; /* the same; NAME_OTHER = "(other)" */
    uint32_t reserved;
    /* per record */
    cell_u64 window;        /* CLOCK_MONOTONIC / WINDOW_NS of the last record */
    cell_u64 longest_ns[2]; /* [window & 1] is the present window's */
    struct segment_histogram duration;
};
#define NAME_OTHER UINT32_MAX

#endif
