/* opstream.h: the one public header of the engine, and its manual.
 *
 * A process that owns models is a PUBLISHER: it subscribes its models, a reader thread drains the vendor's records from a pipe, decodes
 * them and adds them to histograms in a SEGMENT, a sealed memfd that only the publisher writes. A reading process (the daemon) opens a
 * VIEW of each segment and adds views to an EXPOSITION, which merges equal series and renders them.
 *
 * Rules for all functions
 *   - They return 0 or a negative OPSTREAM_E_… and write their outputs (the last parameters, `ret_…`) only on success, unless told
 *     otherwise.
 *   - They never log, never exit, never install signal handlers, never call back.
 *   - `…_free(NULL)` and `…_close(NULL)` do nothing.
 *   - Units are in the names. Strings are NUL-terminated UTF-8 unless told otherwise.
 *   - "Any thread" means: from any thread, but not two at once on the same object.
 *
 * The part between the marks is the binding's declaration too, word for word: plain C, without attributes, conditions and bodies.
 */
#ifndef OPSTREAM_H
#define OPSTREAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* [cffi begin] */

/* ---- Statuses ------------------------------------------------------------------------------------------------------------------ */

enum opstream_status {
    OPSTREAM_OK = 0,
    OPSTREAM_E_INVALID = -1, /* an argument is outside what its function allows */
    OPSTREAM_E_MEMORY = -2,  /* no memory, or no memfd */
    OPSTREAM_E_SYSTEM = -3,  /* a system call failed; errno says how */
    OPSTREAM_E_LIBRARY = -4, /* the vendor's library was not found, or lacks a function that is needed */
    OPSTREAM_E_VENDOR = -5,  /* a call to the vendor failed; its code is in the output named ret_acl_error (written on this failure only) */
    OPSTREAM_E_BUSY = -6,    /* the process has a publisher already, or the object is in use */
    OPSTREAM_E_STATE = -7,   /* not possible in the object's present state */
    OPSTREAM_E_FULL = -8,    /* too little memory or too few threads are left */
    /* what a segment or a message was refused for */
    OPSTREAM_E_NOT_MEMFD = -20, /* the descriptor is no memfd on tmpfs */
    OPSTREAM_E_UNSEALED = -21,  /* a seal is missing */
    OPSTREAM_E_SIZE = -22,      /* larger than allowed, smaller than its header, or not the size that the hello named */
    OPSTREAM_E_MAGIC = -23,     /* not a segment, not a message */
    OPSTREAM_E_VERSION = -24,   /* another version of layout or protocol */
    OPSTREAM_E_LAYOUT = -25     /* a table, an offset or a string lies outside, or a field contradicts another */
};

/* The status's name in lower case without prefix ("not_memfd"): static storage, any thread. "unknown" for others. */
const char *opstream_status_name(int status);

/* The name in the vendor's documentation of an aclError that this project knows ("ACL_ERROR_PROF_MODULES_UNSUPPORTED"), else "". Static
 * storage. */
const char *opstream_acl_error_name(int acl_error);

/* ---- Publisher ----------------------------------------------------------------------------------------------------------------- */

enum opstream_kind { OPSTREAM_KIND_AGENT = 1, OPSTREAM_KIND_HOSTED = 2 };

enum opstream_link_state {
    OPSTREAM_LINK_DOWN = 0,   /* no daemon answers; tried again every second */
    OPSTREAM_LINK_UP = 1,     /* the daemon has welcomed this publisher */
    OPSTREAM_LINK_REFUSED = 2 /* the daemon has refused it; tried again every 30 s */
};

typedef struct opstream_publisher opstream_publisher;

struct opstream_publisher_config {
    uint32_t kind;             /* enum opstream_kind */
    uint32_t series_capacity;  /* rows for operators; 0 = 8192; 64 to 24576 */
    const char *app;           /* the label `app`, at most 127 bytes */
    const char *labels;        /* extra labels "team=a,pod=b", at most 511 bytes; NULL = none */
    const char *hosted_name;   /* hosted only: the configured model's name, at most 63 bytes, else NULL */
    const char *config_digest; /* hosted only: digest of the model's configuration, at most 32 bytes, else NULL */
    const char *socket_path;   /* the daemon's agent socket; NULL = never connects */
    const char *library_path;  /* folders (':' between) searched for the vendor's libraries before the usual ones; NULL = none */
    uint32_t daemon_uid;       /* whom to obey besides root and the own uid; UINT32_MAX = nobody */
};

#define OPSTREAM_WAIT_FOREVER 0xFFFFFFFFFFFFFFFF

/* Creates the process's publisher: segment, reader thread, control thread. A process has at most one (OPSTREAM_E_BUSY).
 * Nothing of the vendor's is looked for or called. Copies `config`. Any thread; does not block on the daemon. The first subscription brings
 * two handlers that stay: in exit() everything is unsubscribed first (1 s at most), and a child that was forked meanwhile and calls exit()
 * ends after its stdio is flushed, with its own status but without destructors. In such a child the parent's publisher answers
 * OPSTREAM_E_STATE, closing it does nothing, and another may be opened. */
int opstream_publisher_open(const struct opstream_publisher_config *config, opstream_publisher **ret_publisher);

/* Subscribes a loaded model: its operators run on `device` (at most 63), and appear under the label `model` = `name` (at most 255 bytes).
 * The vendor's call is made on the control thread; this one waits for it (13 to 90 ms on hardware), but no longer than `wait_ns`
 * (OPSTREAM_WAIT_FOREVER = until it is done): then OPSTREAM_E_BUSY, and it will be done later.
 * Any thread, after aclInit, several at once too. OPSTREAM_E_LIBRARY: the vendor's libraries, looked for at the first call, were not found
 * or lack a function. OPSTREAM_E_VENDOR and *ret_acl_error when the vendor refuses: counted in the segment under the code, and tried again
 * after 1 s to 1 min until it is unsubscribed, unless the vendor doesn't know the model (100011). While somebody else has the vendor's
 * profiler (100042, 148046, 148047) the model's state is `paused`, else `failed`. OPSTREAM_E_STATE: the model is subscribed already, or the process is in exit(). OPSTREAM_E_FULL: before its first subscription the
 * process has less than 256 MB of its cgroups' memory or less than 64 threads free, of which the vendor takes about 117 MB and 19. While
 * models are paused, the new one is too. */
int opstream_publisher_subscribe(opstream_publisher *publisher, uint32_t model_id, uint32_t device, const char *name, uint64_t wait_ns,
                                 int *ret_acl_error);

/* Unsubscribes it: every record made before is in the segment when this returns (OPSTREAM_E_BUSY: it will be unsubscribed, or it is but
 * records are still being read). To be called before the model is unloaded: else OPSTREAM_E_VENDOR, and the vendor keeps its half.
 * OPSTREAM_E_STATE: not subscribed. Any thread, several at once too. */
int opstream_publisher_unsubscribe(opstream_publisher *publisher, uint32_t model_id, uint64_t wait_ns, int *ret_acl_error);

/* The same for all models: before aclFinalize. Any thread, several at once too. */
int opstream_publisher_unsubscribe_all(opstream_publisher *publisher, uint64_t wait_ns);

/* The application wants the vendor's profiler for itself: all models are unsubscribed and say `paused`, until opstream_publisher_restore
 * has been called as often; then they come back by themselves. OPSTREAM_E_BUSY: not done in `wait_ns`; it counts all the same. Any thread,
 * several at once too. */
int opstream_publisher_suspend(opstream_publisher *publisher, uint64_t wait_ns);
int opstream_publisher_restore(opstream_publisher *publisher);

/* A descriptor of the publisher's segment, owned by the caller (O_CLOEXEC), or a negative status (OPSTREAM_E_SYSTEM: the application has
 * closed what isn't its own). */
int opstream_publisher_segment(opstream_publisher *publisher);

/* The connection's state (enum opstream_link_state); any thread, never blocks. */
int opstream_publisher_link_state(const opstream_publisher *publisher);

/* Unsubscribes what is subscribed, says goodbye to the daemon, ends both threads and frees everything. NULL does nothing. Any thread;
 * when no other call is under way. */
void opstream_publisher_close(opstream_publisher *publisher);

/* ---- This process's agent --------------------------------------------------------------------------------------------------------- */

/* Finds the agent that is preloaded into this process, or loads the library `path` for its functions alone (it stays). OPSTREAM_E_LIBRARY:
 * it can't be loaded, or is of another version. Any thread, several at once too. */
int opstream_agent_load(const char *path);

/* As opstream_publisher_subscribe and opstream_publisher_unsubscribe, by that agent's own publisher, so that nothing is counted twice. A
 * model that it has subscribed already gets this name. They wait 500 ms and 2 s at most (OPSTREAM_E_BUSY: it will be done). OPSTREAM_E_STATE:
 * the agent is off, as OPSTREAM_LOG tells, or the model isn't subscribed; OPSTREAM_E_LIBRARY: there is no agent. Any thread, several at once
 * too. */
int opstream_agent_attach(uint32_t model_id, uint32_t device, const char *name, int *ret_acl_error);
int opstream_agent_detach(uint32_t model_id, int *ret_acl_error);

/* ---- Hosting a model (hosted workers only) -------------------------------------------------------------------------------------- */

typedef struct opstream_model opstream_model;

/* Loads AscendCL (folders as in opstream_publisher_config), initialises it, and loads the model at `path` on `device`, with inputs and
 * outputs of the sizes that its description names, zero-filled. On OPSTREAM_E_VENDOR *ret_acl_error is the code, and `text` (of
 * `text_bytes`, always NUL-terminated when > 0) holds which call failed and the vendor's own words; on OPSTREAM_E_LIBRARY `text` holds what
 * was not found and where it was looked for. A process hosts one model. Main thread. */
int opstream_model_open(const char *library_path, const char *path, uint32_t device, char *text, size_t text_bytes, int *ret_acl_error,
                        opstream_model **ret_model);

/* The vendor's id of the loaded model. */
uint32_t opstream_model_id(const opstream_model *model);

/* Executes it once and waits for its end. The thread that opened it. */
int opstream_model_execute(opstream_model *model, int *ret_acl_error);

/* Unloads the model and finalises AscendCL. Unsubscribe it before. NULL does nothing. The thread that opened it. */
void opstream_model_close(opstream_model *model);

/* ---- Messages between publisher and daemon --------------------------------------------------------------------------------------- */

/* SOCK_SEQPACKET, one message a packet, always OPSTREAM_MESSAGE_BYTES long. */
#define OPSTREAM_MESSAGE_BYTES 256
#define OPSTREAM_PROTOCOL_VERSION 1

/* Where each field lies is message.c's; texts are followed by zeros, so that a message has one encoding only. */
enum opstream_message_type {
    OPSTREAM_MESSAGE_HELLO = 1,   /* publisher → daemon, with exactly one descriptor: the segment's memfd */
    OPSTREAM_MESSAGE_WELCOME = 2, /* daemon → publisher: accepted */
    OPSTREAM_MESSAGE_REFUSE = 3,  /* daemon → publisher: not accepted; `reason` and `text` say why; the daemon closes */
    OPSTREAM_MESSAGE_BYE = 4      /* publisher → daemon: everything is counted, the process is about to end */
};

struct opstream_message {
    uint16_t version; /* OPSTREAM_PROTOCOL_VERSION; of a parsed message whatever it says: the caller refuses others */
    uint16_t type;    /* enum opstream_message_type; of a parsed message maybe an unknown one: the caller ignores it */
    /* HELLO */
    uint8_t uuid[16]; /* the segment's */
    uint32_t kind;    /* enum opstream_kind */
    uint64_t segment_bytes;
    char hosted_name[64]; /* "" when not hosted */
    char config_digest[33];
    /* REFUSE */
    int32_t reason; /* enum opstream_status */
    char text[96];
};

/* Both: any thread, no allocation. Parsing: OPSTREAM_E_SIZE, _E_MAGIC, _E_LAYOUT (a string without its end, or not UTF-8, or padding that
 * isn't zero in a known version). */
int opstream_message_encode(const struct opstream_message *message, uint8_t *ret_bytes);
int opstream_message_parse(const uint8_t *bytes, size_t length, struct opstream_message *ret_message);

/* ---- View: the reading side of a segment, which trusts nothing ------------------------------------------------------------------- */

typedef struct opstream_view opstream_view;

struct opstream_view_info {
    uint8_t uuid[16];
    uint32_t kind;
    uint32_t pid; /* as the publisher's own namespace numbers it: for people only */
    uint64_t segment_bytes;
    uint64_t created_wall_ns;
    char app[128]; /* not yet checked as a label */
    char labels[512];
    char hosted_name[64];
    char config_digest[33];
};

struct opstream_counters {
    uint64_t records_read; /* = recorded + every rejected, in each answer */
    uint64_t records_recorded;
    uint64_t records_overflowed;
    uint64_t records_corrupt;
    uint64_t records_name;
    uint64_t records_time;
    uint64_t records_interrupted;
    uint64_t bytes_discarded;
    uint64_t reader_cpu_ns;
    uint64_t pipe_capacity_bytes; /* smallest of the publisher's pipes; 0 = none yet */
    uint64_t pipe_high_water_ppm; /* highest fill in this and the last minute, parts per million of the capacity */
    uint32_t reader_path;         /* 0 not decided, 1 proved, 2 getters */
    uint32_t time_unit;           /* 0 not known, 1 nanoseconds, 2 microseconds */
    uint32_t models_subscribed;
    uint32_t models_paused;
    uint32_t models_failed;
};

struct opstream_subscribe_error {
    int32_t acl_error;
    uint32_t unused;
    uint64_t count;
};

#define OPSTREAM_SUBSCRIBE_ERRORS_MAX 16

/* Checks the descriptor (seals, file system, size ≤ max_bytes) and the header, and maps it read-only. Keeps a copy of `fd`, not `fd`
 * itself. Any thread. Never blocks. Everything that the publisher writes afterwards is checked again on every use. */
int opstream_view_open(int fd, uint64_t max_bytes, opstream_view **ret_view);
int opstream_view_info(const opstream_view *view, struct opstream_view_info *ret_info);

/* `departed` ≠ 0: the publisher is known dead, and what it had read but not recorded counts as interrupted. `now_ns`: CLOCK_MONOTONIC.
 * When the publisher is just committing, three tries, then the last good answer. */
int opstream_view_counters(opstream_view *view, int departed, uint64_t now_ns, struct opstream_counters *ret_counters);

/* At most OPSTREAM_SUBSCRIBE_ERRORS_MAX; returns their number through ret_count. */
int opstream_view_subscribe_errors(const opstream_view *view, struct opstream_subscribe_error *ret_errors, size_t *ret_count);

/* Delay from an operator's end to its being counted: OPSTREAM_CELLS counts (see histograms) and the sum. */
int opstream_view_delay(const opstream_view *view, uint64_t *ret_cells, uint64_t *ret_sum_ns);
void opstream_view_free(opstream_view *view);

/* ---- Histograms ------------------------------------------------------------------------------------------------------------------ */

/* The cells' upper bounds are the union of 2^(k/8) s for k = -186 … 56 (schema 3, 100 ns to 128 s) and 1-2-5 steps from 100 ns to 100 s;
 * the last cell has none. */
#define OPSTREAM_CELLS 269
#define OPSTREAM_CLASSIC_BOUNDS 28

/* The cell that counts a duration. Any thread. */
uint32_t opstream_cell_of(uint64_t duration_ns);

/* Upper bound (inclusive, in seconds) of a cell; +Inf for the last; NaN for a cell that doesn't exist. */
double opstream_cell_bound(uint32_t cell);

/* The classic bounds, ascending: bound number i in nanoseconds (0 when i ≥ OPSTREAM_CLASSIC_BOUNDS), and the cell that it closes. */
uint64_t opstream_classic_bound_ns(uint32_t i);
uint32_t opstream_classic_cell(uint32_t i);

/* ---- Exposition: views in, text out ----------------------------------------------------------------------------------------------- */

typedef struct opstream_exposition opstream_exposition;

struct opstream_exposition_options {
    uint32_t operator_bounds; /* bit i: classic bound i is shown for operators */
    uint32_t model_bounds;    /* the same for models */
    uint32_t label_bytes_max; /* longer op_type and op_name are cut so that with 16 hex digits of the whole one's hash they have at most as
                                 many bytes; at least 16 */
    uint32_t per_operator;    /* ≠ 0: classic histograms by op_name too */
};

int opstream_exposition_new(opstream_exposition **ret_exposition);

/* Adds a view's present values under the label app="…" and further labels (text as it stands behind the contract's labels in a sample:
 * `,pod="x"`, already escaped; "" = none). `now_ns` is CLOCK_MONOTONIC; `alive_until_ns` the same for a live publisher, the time of its
 * death for a departed one. Equal series add up. The view is not kept. A view that turns out torn is left out whole: its status is
 * returned, the exposition stays as it was. */
int opstream_exposition_add(opstream_exposition *exposition, opstream_view *view, const char *app, const char *labels, uint64_t now_ns,
                            uint64_t alive_until_ns);

/* Number of series that the text has without per_operator (after merging): operators' and models' counters and gauges count one each, a
 * histogram one. */
size_t opstream_exposition_series(const opstream_exposition *exposition);

/* Text format 0.0.4 of all operator and model families. *ret_bytes belongs to the exposition, until it is freed or rendered again. */
int opstream_exposition_text(opstream_exposition *exposition, const struct opstream_exposition_options *options, const char **ret_bytes,
                             size_t *ret_length);
void opstream_exposition_free(opstream_exposition *exposition);

/* [cffi end] */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
