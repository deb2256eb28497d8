/* view.h: what the exposition needs of a view beyond opstream.h. Everything here is copied out of the mapping once, checked, and used from the copy. */
#ifndef OPSTREAM_VIEW_H
#define OPSTREAM_VIEW_H

#include "layout.h"

struct view_model {
    char name[256];
    uint32_t device;
    uint32_t state;
    uint64_t subscribed, subscriptions;
    uint64_t last_execution_wall_ns, busy_ns, gap_ns, late_intervals, busy_created_wall_ns;
    uint64_t executions_created_wall_ns, executions_sum_ns;
    uint64_t executions[OPSTREAM_CELLS];
};

struct view_series {
    uint32_t model_row;
    const char *type, *name;           /* copies in the view's own memory, valid while the view lives; lengths without NUL */
    uint32_t type_length, name_length;
    uint64_t created_wall_ns, sum_ns, longest_ns; /* longest_ns: of the present and the previous window, 0 when expired */
    uint64_t cells[OPSTREAM_CELLS];
};

/* Numbers of rows now; every later row number below them can be asked for. OPSTREAM_E_LAYOUT when they exceed the tables. */
int view_rows(opstream_view *view, uint32_t *ret_models, uint32_t *ret_series);

/* Row of MODELS; row of SERIES; row of OTHERS (same numbers as MODELS). OPSTREAM_E_LAYOUT: torn; the view is to be left out. A row without a record has created_wall_ns 0. */
int view_model(opstream_view *view, uint32_t row, struct view_model *ret_model);
int view_series(opstream_view *view, uint32_t row, uint64_t now_ns, struct view_series *ret_series);
int view_other(opstream_view *view, uint32_t row, uint64_t now_ns, struct view_series *ret_series);

#endif
