/* view.h: what the exposition needs of a view beyond opstream.h. Everything here is copied out of the mapping once, checked, and used from
 * the copy. */
#ifndef OPSTREAM_VIEW_H
#define OPSTREAM_VIEW_H

#include "layout.h"

struct view_model {
    const char *name; /* in the view's own memory, valid while the view lives */
    uint32_t device;  /* DEVICE_OTHER: row 0 */
    uint64_t subscribed, subscriptions;
    uint64_t last_execution_wall_ns, busy_ns, gap_ns, late_intervals, busy_created_wall_ns;
    uint64_t executions_created_wall_ns, executions_sum_ns;
    uint64_t executions[OPSTREAM_CELLS];
};

/* What a row of SERIES is, as it was when first seen: a row's identity never changes. */
struct view_identity {
    uint32_t model_row;
    uint32_t type_length, name_length; /* without NUL */
    const char *type, *name;           /* in the view's own memory, valid while the view lives; not checked as UTF-8 */
};

struct view_series {
    uint64_t created_wall_ns, sum_ns, longest_ns; /* longest_ns: of the present and the previous window, 0 when expired */
    uint64_t cells[OPSTREAM_CELLS];
};

/* Takes notice of new rows, and says how many there are. OPSTREAM_E_LAYOUT: torn (more rows than a table has, or a new row, name or string
 * that can't be); the view is to be left out. After it has succeeded nothing about the rows below these numbers can fail. */
int view_rows(opstream_view *view, uint32_t *ret_models, uint32_t *ret_series);

/* Of a row of SERIES below view_rows' number. Its model_row is below that of models. */
const struct view_identity *view_identity(const opstream_view *view, uint32_t row);

/* Numbers of a row of MODELS; of SERIES; of OTHERS (same rows as MODELS). A row without a record, or without memory, has created_wall_ns 0.
 */
void view_model(opstream_view *view, uint32_t row, struct view_model *ret_model);
void view_series(opstream_view *view, uint32_t row, uint64_t now_ns, struct view_series *ret_series);
void view_other(opstream_view *view, uint32_t row, uint64_t now_ns, struct view_series *ret_series);

#endif
