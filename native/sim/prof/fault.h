/* Faults on request, so that clients can be tried against what a stream can do to them.
 *
 * OPSTREAM_SIM_FAULTS = item {"," item}, no spaces; each kind at most once.
 *
 * Kinds that befall records, written KIND=AMOUNT or KIND=AMOUNT@TIME. AMOUNT is a probability from 0 to 1, or "count:N": exactly N
 * times in the process, as early as allowed. TIME is a number with the unit us or ms; of these only the kinds with a default below take
 * one.
 *     corrupt             one bit of the record is flipped after its checksum was made
 *     end-before-start    start and end change places (one of no length ends one tick early); the duration stays
 *     getter-error        the first string getter that is asked about the record answers 500005 and consumes nothing; the next one works
 *     getter-refusal      every string getter that is asked about the record does: its strings are never freed
 *     late                the record is written after later ones, by up to TIME (300ms)
 *     partial-write       a part of the record is written, the rest after TIME (2ms)
 *     stall               the device's writer pauses for TIME (50ms) before the record
 *     truncated           a part of the record is written, the rest never
 * A record has one fault at most, and between two faulty ones of a device there are at least OPSTREAM_SIM_FAULT_GAP (2) good ones.
 *
 * Others:
 *     getter-crash=count:N    the N-th call of a getter that verifies aborts the process
 *     getter-delay=TIME       the getters of names and types take so much longer
 *     layout                  the record's fields are in another order: the getters are right, whoever reads directly is not
 *     microseconds            times are microseconds instead of nanoseconds; needs OPSTREAM_SIM_SPEED=1
 *     record-size=BYTES       a multiple of 8, 80 to 256
 *     subscribe=CODE[:N[+K]]  aclprofModelSubscribe answers CODE: always, or N times, after K calls that go well
 *
 * OPSTREAM_SIM_SEED (0) seeds every choice; with probabilities, a device's choices depend on nothing else. Text that doesn't parse makes
 * every aclprofModelSubscribe answer 500005 and say on stderr what is wrong and where. What was injected is in the journal, counted when
 * the record has been written; getter-delay, layout, microseconds and record-size count 1 per process. */
#ifndef OPSTREAM_SIM_FAULT_H
#define OPSTREAM_SIM_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum fault_kind {
    FAULT_CORRUPT,
    FAULT_END_BEFORE_START,
    FAULT_GETTER_ERROR,
    FAULT_GETTER_REFUSAL,
    FAULT_LATE,
    FAULT_PARTIAL_WRITE,
    FAULT_STALL,
    FAULT_TRUNCATED,
    FAULT_RECORD_KINDS,
    FAULT_GETTER_CRASH = FAULT_RECORD_KINDS,
    FAULT_GETTER_DELAY,
    FAULT_LAYOUT,
    FAULT_MICROSECONDS,
    FAULT_RECORD_SIZE,
    FAULT_SUBSCRIBE,
    FAULT_KINDS,
    FAULT_NONE = FAULT_KINDS,
};

/* One device's choices; used by its writer thread alone. */
struct fault_source {
    uint64_t random;
    uint64_t good; /* records since the last faulty one */
    unsigned turn; /* the kind that is asked first */
};

const char *fault_name(enum fault_kind kind);

/* Reads the environment and sets the record's shape; called once, before any other. */
void fault_read_environment(void);

/* Says what is wrong with the faults on stderr and returns true; false when nothing is. */
bool fault_complain(void);

void fault_seed(struct fault_source *source, uint32_t device);
/* The fault of the next record, or FAULT_NONE. */
enum fault_kind fault_draw(struct fault_source *source);
/* A number from 0 to below `bound`. */
uint64_t fault_random(struct fault_source *source, uint64_t bound);
uint64_t fault_time_ns(enum fault_kind kind);

bool fault_microseconds(void);
/* The code that this subscription must answer; 0 for none. */
int fault_subscribe(void);
/* Counts a getter's call, and aborts when it is the one. */
void fault_getter(void);

#endif
