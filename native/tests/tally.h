/* tally.h: what a segment says about a model, as the daemon would read it. */
#ifndef OPSTREAM_TALLY_H
#define OPSTREAM_TALLY_H

#include <stdbool.h>

#include "app.h"
#include "clock.h"
#include "view.h"

static inline opstream_view *tally_open(int fd) {
    opstream_view *view;
    CHECK(fd >= 0);
    CHECK_EQ_INT(opstream_view_open(fd, 64u << 20, &view), 0);
    close(fd);
    return view;
}

static inline uint64_t tally_sum(const uint64_t *cells) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < OPSTREAM_CELLS; i++) {
        sum += cells[i];
    }
    return sum;
}

/* The row of a model; there must be just one of that name on the device. */
static inline uint32_t tally_row(opstream_view *view, uint32_t device, const char *name, struct view_model *ret_model) {
    uint32_t models, series, found = UINT32_MAX;
    struct view_model model;
    CHECK_EQ_INT(view_rows(view, &models, &series), 0);
    for (uint32_t row = 1; row < models; row++) {
        view_model(view, row, &model);
        if (model.device == device && strcmp(model.name, name) == 0) {
            CHECK_EQ_U64(found, UINT32_MAX);
            found = row;
            *ret_model = model;
        }
    }
    CHECK(found != UINT32_MAX);
    return found;
}

/* Each operator of a model has been counted so many times; returns how many operators it has. */
static inline unsigned tally_operators(opstream_view *view, uint32_t model_row, uint64_t times,
                                       uint64_t (*duration_of)(const struct view_identity *)) {
    uint32_t models, rows;
    unsigned operators = 0;
    CHECK_EQ_INT(view_rows(view, &models, &rows), 0);
    for (uint32_t row = 0; row < rows; row++) {
        const struct view_identity *identity = view_identity(view, row);
        struct view_series series;
        view_series(view, row, clock_monotonic_ns(), &series);
        if (identity->model_row == model_row && series.created_wall_ns != 0) {
            operators++;
            CHECK_EQ_U64(tally_sum(series.cells), times);
            if (duration_of) {
                uint64_t duration_ns = duration_of(identity);
                CHECK_EQ_U64(series.sum_ns, times * duration_ns);
                CHECK_EQ_U64(series.longest_ns, duration_ns);
                CHECK_EQ_U64(series.cells[opstream_cell_of(duration_ns)], times);
            }
        }
    }
    return operators;
}

static inline uint64_t tally_app_duration(const struct view_identity *identity) {
    static const struct {
        const char *type, *name;
        uint64_t duration_ns;
    } operators[APP_OPERATORS] = {{"Conv2D", "conv1", APP_CONV1_NS}, {"Conv2D", "conv2", APP_CONV2_NS}, {"Relu", "relu", APP_RELU_NS}};
    for (unsigned i = 0; i < APP_OPERATORS; i++) {
        if (strcmp(identity->type, operators[i].type) == 0 && strcmp(identity->name, operators[i].name) == 0) {
            return operators[i].duration_ns;
        }
    }
    CHECK_FAIL("operator %s %s was never executed", identity->type, identity->name);
}

/* The app's model has been executed so many times, and everything about it is exact. */
static inline void tally_app_model(opstream_view *view, uint32_t device, const char *name, uint64_t times) {
    struct view_model model;
    uint32_t row = tally_row(view, device, name, &model);
    CHECK_EQ_U64(tally_sum(model.executions), times);
    CHECK_EQ_U64(tally_operators(view, row, times, tally_app_duration), times ? APP_OPERATORS : 0);
}

static inline struct opstream_counters tally_counters(opstream_view *view, bool departed) {
    struct opstream_counters counters;
    CHECK_EQ_INT(opstream_view_counters(view, departed, clock_monotonic_ns(), &counters), 0);
    CHECK_EQ_U64(counters.records_read, counters.records_recorded + counters.records_corrupt + counters.records_name +
                                            counters.records_time + counters.records_interrupted);
    return counters;
}

#endif
