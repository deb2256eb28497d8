/* What the process is doing with its profiler: one thing at a time. */
#ifndef OPSTREAM_SIM_MODE_H
#define OPSTREAM_SIM_MODE_H

#include <pthread.h>
#include <stdbool.h>

enum mode { MODE_OFF, MODE_COMMAND_LINE, MODE_COLLECTING, MODE_SUBSCRIBED };

/* Guards `mode`, and is held through a subscribe or unsubscribe: behind one that hangs, all others hang. */
extern pthread_mutex_t mode_lock;
extern enum mode mode;

/* Reads OPSTREAM_SIM_COMMAND_LINE; called once, before any other. */
void mode_read_environment(void);

/* Every aclprof function asks this first: whether one of them was called before aclInit ever was, and the process therefore lost
 * some of them until it ends. Never blocks. */
bool mode_called_too_early(void);

#endif
