#include "fault.h"

#include "journal.h"
#include "record.h"
#include "sim.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNLIMITED UINT64_MAX
#define MS 1000000u

struct fault {
    bool on;
    double probability;
    _Atomic uint64_t left; /* how often it may still happen */
    uint64_t time_ns;
    uint64_t number; /* record-size: bytes; subscribe: code; getter-crash: the call */
};

static const char *const names[FAULT_KINDS] = {
    "corrupt",   "end-before-start", "getter-error", "getter-refusal", "late",         "partial-write", "stall",
    "truncated", "getter-crash",     "getter-delay", "layout",         "microseconds", "record-size",   "subscribe",
};

static struct fault faults[FAULT_KINDS] = {
    [FAULT_LATE] = {.time_ns = 300u * MS},
    [FAULT_PARTIAL_WRITE] = {.time_ns = 2u * MS},
    [FAULT_STALL] = {.time_ns = 50u * MS},
};
static uint64_t seed;
static uint64_t gap = 2;
static bool any_record_fault;
static char complaint[256];
static uint64_t subscribes_well; /* calls before the first that fails */
static _Atomic uint64_t getter_calls, subscribe_calls;

const char *fault_name(enum fault_kind kind) {
    return names[kind];
}

/* Each parse_ function moves `*text` behind what it took and returns whether it found it. */

static bool parse_number(const char **text, uint64_t *ret_number) {
    if (**text < '0' || **text > '9') {
        return false;
    }
    char *end;
    errno = 0;
    uint64_t number = strtoull(*text, &end, 10);
    if (errno) {
        return false;
    }
    *text = end;
    *ret_number = number;
    return true;
}

static bool parse_word(const char **text, const char *word) {
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0) {
        return false;
    }
    *text += length;
    return true;
}

static bool parse_count(const char **text, uint64_t *ret_count) {
    return parse_word(text, "count:") && parse_number(text, ret_count);
}

/* Not by strtod, whose decimal point is the application's locale's. */
static bool parse_probability(const char **text, double *ret_probability) {
    uint64_t whole;
    if (!parse_number(text, &whole)) {
        return false;
    }
    double probability = (double)whole;
    if (parse_word(text, ".")) {
        for (double place = 0.1; **text >= '0' && **text <= '9'; place /= 10) {
            probability += place * (*(*text)++ - '0');
        }
    }
    *ret_probability = probability;
    return probability <= 1;
}

static bool parse_amount(const char **text, struct fault *fault) {
    uint64_t count;
    if (parse_count(text, &count)) {
        fault->left = count;
        return true;
    }
    return parse_probability(text, &fault->probability);
}

static bool parse_time(const char **text, struct fault *fault) {
    uint64_t number;
    if (!parse_number(text, &number) || number > 3600000000u) {
        return false;
    }
    uint64_t unit_ns = parse_word(text, "us") ? 1000u : parse_word(text, "ms") ? MS : 0;
    if (unit_ns == 0 || number == 0) {
        return false;
    }
    fault->time_ns = number * unit_ns;
    return true;
}

static bool parse_value(const char **text, enum fault_kind kind) {
    struct fault *fault = &faults[kind];
    fault->probability = 1;
    fault->left = UNLIMITED;
    if (kind == FAULT_LAYOUT || kind == FAULT_MICROSECONDS) {
        return true;
    }
    if (!parse_word(text, "=")) {
        return false;
    }
    switch (kind) {
    case FAULT_GETTER_CRASH:
        return parse_count(text, &fault->number) && fault->number > 0;
    case FAULT_GETTER_DELAY:
        return parse_time(text, fault);
    case FAULT_RECORD_SIZE:
        return parse_number(text, &fault->number) && fault->number % 8 == 0 && fault->number >= RECORD_BYTES &&
               fault->number <= RECORD_MAX_BYTES;
    case FAULT_SUBSCRIBE: {
        uint64_t count = UNLIMITED;
        if (!parse_number(text, &fault->number) || fault->number == 0 || fault->number > INT32_MAX) {
            return false;
        }
        if (parse_word(text, ":") && (!parse_number(text, &count) || (parse_word(text, "+") && !parse_number(text, &subscribes_well)))) {
            return false;
        }
        fault->left = count;
        return true;
    }
    default:
        return parse_amount(text, fault) && (!parse_word(text, "@") || (fault->time_ns > 0 && parse_time(text, fault)));
    }
}

static enum fault_kind parse_kind(const char **text) {
    size_t length = strcspn(*text, "=,");
    for (unsigned kind = 0; kind < FAULT_KINDS; kind++) {
        if (strlen(names[kind]) == length && strncmp(*text, names[kind], length) == 0) {
            *text += length;
            return kind;
        }
    }
    return FAULT_NONE;
}

static void complain(const char *variable, const char *text, const char *at, const char *what) {
    snprintf(complaint, sizeof complaint, "%s: %s at character %td: '%.60s'\n", variable, what, at - text + 1, at);
}

static void parse_faults(const char *text) {
    for (const char *at = text;;) {
        const char *item = at;
        enum fault_kind kind = parse_kind(&at);
        if (kind == FAULT_NONE) {
            complain("OPSTREAM_SIM_FAULTS", text, item, "unknown kind of fault");
            return;
        }
        if (faults[kind].on) {
            complain("OPSTREAM_SIM_FAULTS", text, item, "a kind given twice");
            return;
        }
        if (!parse_value(&at, kind) || (*at && *at != ',')) {
            complain("OPSTREAM_SIM_FAULTS", text, item, "not a value that this kind takes");
            return;
        }
        faults[kind].on = true;
        any_record_fault |= kind < FAULT_RECORD_KINDS;
        if (!*at++) {
            return;
        }
    }
}

static void parse_variable(const char *variable, uint64_t *number) {
    const char *text = getenv(variable);
    const char *at = text;
    if (text && *text && (!parse_number(&at, number) || *at)) {
        complain(variable, text, text, "not a number");
    }
}

void fault_read_environment(void) {
    parse_variable("OPSTREAM_SIM_SEED", &seed);
    parse_variable("OPSTREAM_SIM_FAULT_GAP", &gap);
    const char *text = getenv("OPSTREAM_SIM_FAULTS");
    if (text && *text) {
        parse_faults(text);
    }
    record_shape(faults[FAULT_RECORD_SIZE].on ? faults[FAULT_RECORD_SIZE].number : RECORD_BYTES, faults[FAULT_LAYOUT].on);
    for (enum fault_kind kind = FAULT_GETTER_DELAY; kind <= FAULT_RECORD_SIZE; kind++) {
        if (faults[kind].on) {
            journal_add(JOURNAL_FAULTS + kind, 1);
        }
    }
}

bool fault_complain(void) {
    if (!complaint[0] && faults[FAULT_MICROSECONDS].on && sim_speed() != 1.0) {
        snprintf(complaint, sizeof complaint, "OPSTREAM_SIM_FAULTS: 'microseconds' needs OPSTREAM_SIM_SPEED=1\n");
    }
    fputs(complaint, stderr);
    return complaint[0] != '\0';
}

/* splitmix64 */
static uint64_t next_random(struct fault_source *source) {
    uint64_t z = source->random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void fault_seed(struct fault_source *source, uint32_t device) {
    *source = (struct fault_source){.random = seed * 0x2545F4914F6CDD1Du + device, .good = gap};
}

uint64_t fault_random(struct fault_source *source, uint64_t bound) {
    return next_random(source) % bound;
}

/* Whether it happens now; takes one of those left. */
static bool happens(struct fault *fault, struct fault_source *source) {
    if (!fault->on || (fault->probability < 1 && (double)(next_random(source) >> 11) * 0x1p-53 >= fault->probability)) {
        return false;
    }
    uint64_t left = atomic_load_explicit(&fault->left, memory_order_relaxed);
    while (left > 0 && left != UNLIMITED) {
        if (atomic_compare_exchange_weak(&fault->left, &left, left - 1)) {
            return true;
        }
    }
    return left == UNLIMITED;
}

/* The kinds take turns in being asked first, so that none starves another. */
enum fault_kind fault_draw(struct fault_source *source) {
    if (!any_record_fault) {
        return FAULT_NONE;
    }
    if (source->good < gap) {
        source->good++;
        return FAULT_NONE;
    }
    for (unsigned i = 0; i < FAULT_RECORD_KINDS; i++) {
        enum fault_kind kind = (source->turn + i) % FAULT_RECORD_KINDS;
        if (happens(&faults[kind], source)) {
            source->turn = kind + 1;
            source->good = 0;
            return kind;
        }
    }
    source->good++;
    return FAULT_NONE;
}

uint64_t fault_time_ns(enum fault_kind kind) {
    return faults[kind].time_ns;
}

bool fault_microseconds(void) {
    return faults[FAULT_MICROSECONDS].on;
}

int fault_subscribe(void) {
    struct fault_source unused = {0};
    if (atomic_fetch_add(&subscribe_calls, 1) < subscribes_well || !happens(&faults[FAULT_SUBSCRIBE], &unused)) {
        return 0;
    }
    journal_add(JOURNAL_FAULTS + FAULT_SUBSCRIBE, 1);
    return (int)faults[FAULT_SUBSCRIBE].number;
}

void fault_getter(void) {
    struct fault *crash = &faults[FAULT_GETTER_CRASH];
    if (crash->on && atomic_fetch_add(&getter_calls, 1) + 1 == crash->number) {
        journal_add(JOURNAL_FAULTS + FAULT_GETTER_CRASH, 1);
        abort();
    }
}
