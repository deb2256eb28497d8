#include "busy.h"

#include <stdlib.h>
#include <string.h>

/* The slack makes forgetting the oldest a matter of one move per interval. */
#define SPANS_CAPACITY (2 * BUSY_INTERVALS_MAX)
#define BATCH_NS UINT64_C(1000000) /* what is final is counted in batches of at least this much device time */

struct span {
    uint64_t start, end;
};

/* Disjoint intervals in order of time, the final ones and the waiting ones alike. */
struct spans {
    uint32_t tail;
    uint32_t uncounted; /* the first one that ends after what is counted, or one before it */
    uint64_t forgotten; /* nothing is known about the time before */
    struct span at[SPANS_CAPACITY];
};

struct busy {
    struct segment_model *model;
    uint64_t newest_end;
    uint64_t horizon; /* everything before is final */
    uint64_t counted; /* and counted up to here */
    struct spans operators, executions;
};

int busy_new(struct segment_model *model, struct busy **ret_busy) {
    struct busy *busy = calloc(1, sizeof(*busy));
    if (!busy) {
        return OPSTREAM_E_MEMORY;
    }
    busy->model = model;
    *ret_busy = busy;
    return 0;
}

void busy_free(struct busy *busy) {
    free(busy);
}

static uint64_t lesser(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t greater(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Joins [start, end) to what is there, which has room for one more. Its place is looked for from the end, as it is seldom old. */
static void spans_add(struct spans *spans, uint64_t start, uint64_t end) {
    uint32_t after = spans->tail;
    while (after > 0 && spans->at[after - 1].start > end) {
        after--;
    }
    uint32_t first = after;
    while (first > 0 && spans->at[first - 1].end >= start) {
        first--;
    }
    if (first < after) {
        start = lesser(start, spans->at[first].start);
        end = greater(end, spans->at[after - 1].end);
    }
    memmove(&spans->at[first + 1], &spans->at[after], (spans->tail - after) * sizeof(spans->at[0]));
    spans->tail = spans->tail - after + first + 1;
    spans->at[first] = (struct span){start, end};
    if (spans->uncounted > first) {
        spans->uncounted = first;
    }
}

/* Time of [start, end) that the spans from number *i on cover. Moves *i to the first one that ends after it. */
static inline uint64_t covered(const struct spans *spans, uint32_t *i, uint64_t start, uint64_t end) {
    const struct span *span = &spans->at[*i], *tail = &spans->at[spans->tail];
    uint64_t sum = 0;
    while (span < tail && span->end <= start) {
        span++;
    }
    if (span < tail && span->start < start && span->end <= end) {
        sum = span->end - start;
        span++;
    }
    for (; span < tail && span->end <= end; span++) {
        sum += span->end - span->start;
    }
    if (span < tail && span->start < end) {
        sum += end - greater(start, span->start);
    }
    *i = (uint32_t)(span - spans->at);
    return sum;
}

/* The first span that ends after `time`: looked for from the end, as what is asked about is seldom old. */
static uint32_t first_after(const struct spans *spans, uint64_t time) {
    uint32_t i = spans->tail;
    while (i > 0 && spans->at[i - 1].end > time) {
        i--;
    }
    return i;
}

/* Nothing can come to lie before the horizon any more, so it doesn't matter when that is counted. */
static __attribute__((noinline)) void count_final(struct busy *busy) {
    struct spans *operators = &busy->operators, *executions = &busy->executions;
    uint64_t from = busy->counted, to = busy->horizon;
    uint32_t inside = operators->uncounted, i = executions->uncounted;
    cell_add(&busy->model->busy_ns, covered(operators, &operators->uncounted, from, to));
    for (; i < executions->tail && executions->at[i].start < to; i++) {
        uint64_t start = greater(from, executions->at[i].start), end = lesser(to, executions->at[i].end);
        if (start < end) {
            cell_add(&busy->model->gap_ns, end - start - covered(operators, &inside, start, end));
        }
        if (executions->at[i].end > to) {
            break;
        }
    }
    executions->uncounted = i;
    busy->counted = to;
}

static void forget_oldest(struct busy *busy, struct spans *spans) {
    uint32_t oldest = spans->tail - BUSY_INTERVALS_MAX;
    count_final(busy);
    spans->forgotten = spans->at[oldest].end;
    spans->tail = BUSY_INTERVALS_MAX - 1;
    memmove(&spans->at[0], &spans->at[oldest + 1], spans->tail * sizeof(spans->at[0]));
    spans->uncounted = 0;
}

/* When as many wait as may, the oldest is final. */
static inline void limit_waiting(struct busy *busy, const struct spans *spans) {
    if (spans->tail >= BUSY_INTERVALS_MAX) {
        busy->horizon = greater(busy->horizon, spans->at[spans->tail - BUSY_INTERVALS_MAX].end);
    }
}

/* When as many are kept as can be, all but those that may wait are forgotten. */
static void make_room(struct busy *busy, struct spans *spans) {
    limit_waiting(busy, spans);
    if (spans->tail == SPANS_CAPACITY) {
        forget_oldest(busy, spans);
    }
}

static inline void advance(struct busy *busy, uint64_t end_ns) {
    if (end_ns > busy->newest_end) {
        busy->newest_end = end_ns;
        if (end_ns > BUSY_HORIZON_NS) {
            busy->horizon = greater(busy->horizon, end_ns - BUSY_HORIZON_NS);
        }
    }
    if (busy->horizon - busy->counted >= BATCH_NS) {
        count_final(busy);
    }
}

/* An interval is put in its place before its own end moves the horizon: one that is longer than a second is not late. */
static __attribute__((noinline)) void place_operator(struct busy *busy, uint64_t start_ns, uint64_t end_ns) {
    make_room(busy, &busy->operators);
    if (start_ns < busy->horizon) {
        cell_add(&busy->model->late_intervals, 1);
        start_ns = busy->horizon;
    }
    if (start_ns < end_ns) {
        spans_add(&busy->operators, start_ns, end_ns);
    }
    advance(busy, end_ns);
}

/* Whether it comes after the newest one or goes on with it, and nothing else has to be looked at. */
static inline bool comes_last(const struct busy *busy, const struct spans *spans, uint64_t start) {
    return spans->tail > spans->uncounted && spans->tail < SPANS_CAPACITY && start >= spans->at[spans->tail - 1].start &&
           start >= busy->horizon;
}

/* Most do. */
void busy_operator(struct busy *busy, uint64_t start_ns, uint64_t end_ns) {
    struct spans *operators = &busy->operators;
    if (start_ns >= end_ns || !comes_last(busy, operators, start_ns)) {
        place_operator(busy, start_ns, end_ns);
        return;
    }
    struct span *newest = &operators->at[operators->tail - 1];
    limit_waiting(busy, operators);
    if (start_ns > newest->end) {
        operators->at[operators->tail++] = (struct span){start_ns, end_ns};
    } else {
        newest->end = greater(newest->end, end_ns);
    }
    advance(busy, end_ns);
}

/* Of the part of an execution whose time has been counted already, where no other execution has been counted. */
static uint64_t past_gap(const struct busy *busy, uint64_t start, uint64_t end) {
    const struct spans *operators = &busy->operators, *executions = &busy->executions;
    uint64_t gap = 0;
    uint32_t i = first_after(executions, start), inside = first_after(operators, start);
    while (start < end) {
        uint64_t free_end = i < executions->tail ? lesser(end, greater(start, executions->at[i].start)) : end;
        if (free_end > start) {
            gap += free_end - start - covered(operators, &inside, start, free_end);
        }
        start = i < executions->tail ? greater(free_end, executions->at[i].end) : end;
        i++;
    }
    return gap;
}

void busy_execution(struct busy *busy, uint64_t start_ns, uint64_t end_ns) {
    make_room(busy, &busy->executions);
    start_ns = greater(start_ns, greater(busy->operators.forgotten, busy->executions.forgotten));
    if (start_ns < end_ns) {
        cell_add(&busy->model->gap_ns, past_gap(busy, start_ns, lesser(end_ns, busy->counted)));
        spans_add(&busy->executions, start_ns, end_ns);
    }
    advance(busy, end_ns);
}

void busy_settle(struct busy *busy) {
    busy->horizon = greater(busy->horizon, busy->newest_end);
    count_final(busy);
}

void busy_restart(struct busy *busy) {
    busy_settle(busy);
    busy->newest_end = busy->horizon = busy->counted = 0;
    busy->operators.tail = busy->operators.uncounted = 0;
    busy->executions.tail = busy->executions.uncounted = 0;
    busy->operators.forgotten = busy->executions.forgotten = 0;
}
