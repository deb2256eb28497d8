#include "account.h"

#include <stdlib.h>

#include "busy.h"
#include "histogram.h"
#include "holdback.h"
#include "series.h"

#define DAY_NS UINT64_C(86400000000000)
#define MAPPED (UINT64_C(1) << 32)

/* What belongs to a row of MODELS. */
struct account_row {
    cell_u64 model_id;         /* MAPPED | the model's id; 0 = none. Written by the control thread */
    struct busy *_Atomic busy; /* made by the control thread; NULL: no memory was to be had */
    struct segment_model *model;
    uint32_t number;
};

struct account {
    struct segment_counters *counters;
    struct series_table *series;
    struct account_row *latest; /* the latest run's */
    struct moment now;
    enum time_unit unit;
    uint64_t tick_ns, last_tick, day_ticks; /* a tick; the last one that a u64 of ns can tell; a day */
    struct histogram_cursor delay;
    struct holdback *holdback; /* NULL once it has ended */
    cell_u64 subscribed_ns;    /* of the first model. Written by the control thread */
    struct account_row rows[MODELS_CAPACITY];
};

static void set_tick(struct account *account, uint64_t tick_ns) {
    account->tick_ns = tick_ns;
    account->last_tick = UINT64_MAX / tick_ns;
    account->day_ticks = DAY_NS / tick_ns;
}

static bool have_busy(struct account *account, uint32_t row) {
    struct busy *busy = NULL;
    if (busy_new(account->rows[row].model, &busy) != OPSTREAM_OK) {
        return false;
    }
    atomic_store_explicit(&account->rows[row].busy, busy, memory_order_release);
    return true;
}

int account_new(struct segment_writer *writer, struct account **ret_account) {
    struct account *account = calloc(1, sizeof *account);
    if (account == NULL) {
        return OPSTREAM_E_MEMORY;
    }
    account->counters = &writer->base->counters;
    histogram_cursor_init(&writer->base->delay, &account->delay);
    account->latest = account->rows;
    for (uint32_t row = 0; row < MODELS_CAPACITY; row++) {
        account->rows[row].model = &writer->models[row];
        account->rows[row].number = row;
    }
    set_tick(account, 1);
    int status = series_table_new(writer, &account->series);
    if (status == OPSTREAM_OK) {
        status = holdback_new(&account->holdback);
    }
    if (status == OPSTREAM_OK && !have_busy(account, 0)) {
        status = OPSTREAM_E_MEMORY;
    }
    if (status != OPSTREAM_OK) {
        account_free(account);
        return status;
    }
    *ret_account = account;
    return OPSTREAM_OK;
}

void account_free(struct account *account) {
    if (account == NULL) {
        return;
    }
    for (uint32_t row = 0; row < MODELS_CAPACITY; row++) {
        busy_free(account->rows[row].busy);
    }
    holdback_free(account->holdback);
    series_table_free(account->series);
    free(account);
}

void account_map_model(struct account *account, uint32_t model_id, uint32_t model_row, uint64_t subscribed_ns) {
    if (cell_get(&account->subscribed_ns) == 0) {
        cell_set(&account->subscribed_ns, subscribed_ns);
    }
    for (uint32_t row = 0; row < MODELS_CAPACITY; row++) {
        if (row != model_row && cell_get(&account->rows[row].model_id) == (MAPPED | model_id)) {
            cell_set(&account->rows[row].model_id, 0);
        }
    }
    if (model_row == 0) {
        return; /* where unknown ids go anyway */
    }
    if (atomic_load_explicit(&account->rows[model_row].busy, memory_order_relaxed) == NULL) {
        have_busy(account, model_row);
    }
    cell_set(&account->rows[model_row].model_id, MAPPED | model_id);
}

void account_restart_model(struct account *account, uint32_t model_row) {
    struct busy *busy = atomic_load_explicit(&account->rows[model_row].busy, memory_order_acquire);
    if (busy != NULL) {
        busy_restart(busy);
    }
}

static __attribute__((noinline)) struct account_row *find_row(struct account *account, uint64_t mapped) {
    for (uint32_t row = 1; row < MODELS_CAPACITY; row++) {
        if (cell_get(&account->rows[row].model_id) == mapped) {
            account->latest = &account->rows[row];
            return account->latest;
        }
    }
    return &account->rows[0];
}

/* Records of a model come in rows, so the latest one's row is the likely one. Only row 0 stands for no id. */
static inline struct account_row *row_of(struct account *account, uint32_t model_id) {
    uint64_t mapped = MAPPED | model_id;
    return cell_get(&account->latest->model_id) == mapped ? account->latest : find_row(account, mapped);
}

void account_clock_init(struct device_clock *ret_clock) {
    *ret_clock = (struct device_clock){.present_lag_ns = INT64_MAX, .earlier_lag_ns = INT64_MAX, .smallest_lag_ns = INT64_MAX};
}

static __attribute__((noinline)) void begin_window(struct device_clock *clock, uint64_t window) {
    clock->earlier_lag_ns = window == clock->window + 1 ? clock->present_lag_ns : INT64_MAX;
    clock->present_lag_ns = INT64_MAX;
    clock->window = window;
    clock->smallest_lag_ns = clock->earlier_lag_ns;
}

static __attribute__((noinline)) void lower_lag(struct device_clock *clock, int64_t lag_ns) {
    clock->present_lag_ns = lag_ns;
    clock->smallest_lag_ns = lag_ns < clock->earlier_lag_ns ? lag_ns : clock->earlier_lag_ns;
}

/* The device's clock counts from anywhere: the fastest record of the last minute is taken for one that needed no time. */
static inline int64_t align(struct device_clock *clock, int64_t lag_ns, uint64_t window) {
    if (window != clock->window) {
        begin_window(clock, window);
    }
    if (lag_ns < clock->present_lag_ns) {
        lower_lag(clock, lag_ns);
    }
    return clock->smallest_lag_ns;
}

static inline void count_delay(struct account *account, struct device_clock *clock, uint64_t end_ns, uint64_t arrival_ns) {
    int64_t smallest_ns = align(clock, (int64_t)(arrival_ns - end_ns), account->now.window);
    int64_t delay_ns = (int64_t)(account->now.monotonic_ns - end_ns) - smallest_ns;
    histogram_cursor_add(&account->delay, delay_ns > 0 ? (uint64_t)delay_ns : 0, account->now.wall_ns);
}

static __attribute__((noinline)) void count_execution(struct account_row *row, uint64_t start_ns, uint64_t end_ns, uint64_t wall_ns) {
    struct busy *busy = atomic_load_explicit(&row->busy, memory_order_acquire);
    histogram_add(&row->model->executions, end_ns - start_ns, wall_ns);
    if (busy != NULL) {
        busy_execution(busy, start_ns, end_ns);
    }
}

/* Whether it has a row of its own. */
static inline bool count_operator(struct account *account, struct account_row *row, const struct operator_run *run, uint64_t start_ns,
                                  uint64_t end_ns) {
    struct busy *busy = atomic_load_explicit(&row->busy, memory_order_acquire);
    if (busy != NULL) {
        busy_operator(busy, start_ns, end_ns);
    }
    return series_record(account->series, row->number, run, end_ns - start_ns, &account->now);
}

static inline __attribute__((always_inline)) void count(struct account *account, struct device_clock *clock, const struct operator_run *run,
                                                        struct account_row *row, uint64_t arrival_ns) {
    struct segment_totals *live = &account->counters->live;
    if (run->end < run->start || run->end > account->last_tick || run->end - run->start > account->day_ticks) {
        cell_add(&live->records_time, 1);
        return;
    }
    uint64_t start_ns = run->start * account->tick_ns, end_ns = run->end * account->tick_ns;
    bool own_row = true;
    if (cell_get(&row->model->busy_created_wall_ns) == 0) {
        cell_set(&row->model->busy_created_wall_ns, account->now.wall_ns);
    }
    cell_set(&row->model->last_execution_wall_ns, account->now.wall_ns);
    if (run->is_execution) {
        count_execution(row, start_ns, end_ns, account->now.wall_ns);
    } else {
        count_delay(account, clock, end_ns, arrival_ns);
        own_row = count_operator(account, row, run, start_ns, end_ns);
    }
    if (!own_row || row->number == 0) {
        cell_add(&live->records_overflowed, 1);
    }
    cell_add(&live->records_recorded, 1);
}

void account_release(struct account *account) {
    struct held_run held;
    while (account->holdback != NULL && holdback_pop(account->holdback, &held)) {
        count(account, held.clock, &held.run, &account->rows[held.model_row], held.arrival_ns);
    }
    holdback_free(account->holdback);
    account->holdback = NULL;
}

static void decide(struct account *account, enum time_unit unit) {
    account->unit = unit;
    set_tick(account, unit == UNIT_MICROSECONDS ? 1000 : 1);
    cell_set(&account->counters->time_unit, unit);
    account_release(account);
}

/* Whether the run waits. When there is no room for it, all that wait are counted, and it after them. */
static bool hold(struct account *account, struct device_clock *clock, const struct operator_run *run, const struct account_row *row) {
    struct held_run held = {.run = *run, .clock = clock, .model_row = row->number, .arrival_ns = account->now.monotonic_ns};
    if (account->holdback != NULL && holdback_push(account->holdback, &held)) {
        return true;
    }
    account_release(account);
    return false;
}

/* Learns from the run. Whether it waits for more to be known. */
static __attribute__((noinline)) bool wait_for_unit(struct account *account, struct device_clock *clock, const struct operator_run *run,
                                                    const struct account_row *row) {
    if (clock->evidence.first_arrival_ns == 0) {
        timeunit_init(&clock->evidence, cell_get(&account->subscribed_ns));
    }
    enum time_unit unit = timeunit_observe(&clock->evidence, run->start, run->end, account->now.monotonic_ns);
    if (unit == UNIT_UNKNOWN) {
        return hold(account, clock, run, row);
    }
    decide(account, unit);
    return false;
}

const struct text_guess *account_guess(const struct account *account) {
    return series_guess(account->series);
}

void account_run(struct account *account, struct device_clock *clock, const struct operator_run *run) {
    struct account_row *row = row_of(account, run->model_id);
    if (account->unit == UNIT_UNKNOWN && run->end >= run->start && wait_for_unit(account, clock, run, row)) {
        return;
    }
    count(account, clock, run, row, account->now.monotonic_ns);
}

void account_set_time(struct account *account, uint64_t now_ns, uint64_t wall_ns) {
    account->now = moment_of(now_ns, wall_ns);
    if (account_held(account) > 0 && now_ns >= account_held_until_ns(account)) {
        account_release(account);
    }
}

void account_settle(struct account *account) {
    for (uint32_t row = 0; row < MODELS_CAPACITY; row++) {
        struct busy *busy = atomic_load_explicit(&account->rows[row].busy, memory_order_acquire);
        if (busy != NULL) {
            busy_settle(busy);
        }
    }
}

uint64_t account_held(const struct account *account) {
    return account->holdback != NULL ? holdback_count(account->holdback) : 0;
}

uint64_t account_held_until_ns(const struct account *account) {
    return holdback_since_ns(account->holdback) + TIMEUNIT_HELD_NS;
}
