#include "budget.h"

#include "segment.h"

/* So high that no honest count gets there, so low that a sum of some can't wrap. */
#define COUNT_MAX (UINT64_MAX / 16)

struct totals {
    uint64_t read, recorded, overflowed, corrupt, name, time, bytes_discarded;
};

static void load_totals(const struct segment_totals *from, struct totals *ret_totals) {
    ret_totals->read = atomic_load_explicit((cell_u64 *)&from->records_read, memory_order_acquire);
    ret_totals->recorded = atomic_load_explicit((cell_u64 *)&from->records_recorded, memory_order_acquire);
    ret_totals->overflowed = atomic_load_explicit((cell_u64 *)&from->records_overflowed, memory_order_acquire);
    ret_totals->corrupt = atomic_load_explicit((cell_u64 *)&from->records_corrupt, memory_order_acquire);
    ret_totals->name = atomic_load_explicit((cell_u64 *)&from->records_name, memory_order_acquire);
    ret_totals->time = atomic_load_explicit((cell_u64 *)&from->records_time, memory_order_acquire);
    ret_totals->bytes_discarded = atomic_load_explicit((cell_u64 *)&from->bytes_discarded, memory_order_acquire);
}

static bool load_committed(const struct segment_counters *counters, struct totals *ret_totals) {
    for (int tries = 0; tries < 3; tries++) {
        uint64_t before = atomic_load_explicit((cell_u64 *)&counters->sequence, memory_order_acquire);
        load_totals(&counters->committed, ret_totals);
        if (!(before & 1) && cell_get(&counters->sequence) == before) {
            return true;
        }
    }
    return false;
}

/* What a dead publisher had taken from its pipes and not yet come to. */
static void load_last(const struct segment_counters *counters, struct totals *ret_totals) {
    load_totals(&counters->live, ret_totals);
    uint64_t taken = cell_get(&counters->bytes_taken), settled = cell_get(&counters->bytes_settled),
             record_bytes = cell_get(&counters->record_bytes);
    uint64_t unsettled = taken > settled ? taken - settled : 0;
    ret_totals->read += record_bytes ? unsettled / record_bytes : 0;
    ret_totals->bytes_discarded += record_bytes ? unsettled % record_bytes : unsettled;
}

static uint64_t highest(uint64_t last, uint64_t now) {
    if (now > COUNT_MAX) {
        now = COUNT_MAX;
    }
    return now > last ? now : last;
}

/* Each count stays or grows. Whatever is read but in no other count is interrupted, and a sum of more than was read is what was read: so
 * the identity holds, whatever the segment says. */
static void account(const struct totals *totals, struct opstream_counters *counters) {
    counters->records_recorded = highest(counters->records_recorded, totals->recorded);
    counters->records_overflowed = highest(counters->records_overflowed, totals->overflowed);
    counters->records_corrupt = highest(counters->records_corrupt, totals->corrupt);
    counters->records_name = highest(counters->records_name, totals->name);
    counters->records_time = highest(counters->records_time, totals->time);
    counters->bytes_discarded = highest(counters->bytes_discarded, totals->bytes_discarded);
    uint64_t sum = counters->records_recorded + counters->records_corrupt + counters->records_name + counters->records_time;
    uint64_t read = highest(sum + counters->records_interrupted, totals->read);
    counters->records_interrupted = read - sum;
    counters->records_read = read;
}

void budget_read(const struct segment_counters *from, bool departed, struct opstream_counters *counters) {
    struct totals totals;
    if (departed) {
        load_last(from, &totals);
    } else if (!load_committed(from, &totals)) {
        return;
    }
    account(&totals, counters);
}
