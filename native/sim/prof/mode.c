#include "mode.h"

#include "sim.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum first_call { FIRST_CALL_NONE, FIRST_CALL_IN_TIME, FIRST_CALL_TOO_EARLY };

pthread_mutex_t mode_lock = PTHREAD_MUTEX_INITIALIZER;
enum mode mode = MODE_OFF;
static _Atomic int first_call = FIRST_CALL_NONE;

void mode_read_environment(void) {
    const char *text = getenv("OPSTREAM_SIM_COMMAND_LINE");
    if (text && strcmp(text, "1") == 0) {
        mode = MODE_COMMAND_LINE;
    }
}

bool mode_called_too_early(void) {
    int call = atomic_load_explicit(&first_call, memory_order_relaxed);
    if (call == FIRST_CALL_NONE) {
        int now = sim_initialised() ? FIRST_CALL_IN_TIME : FIRST_CALL_TOO_EARLY;
        if (atomic_compare_exchange_strong(&first_call, &call, now)) {
            call = now;
        }
    }
    return call == FIRST_CALL_TOO_EARLY;
}
