/* The process's state: initialised or not, profiled or not. sim_initialised and sim_attach_profiler (sim.h) are its outward side. */
#ifndef OPSTREAM_SIM_PROCESS_H
#define OPSTREAM_SIM_PROCESS_H

#include "sim.h"

/* The profiling half, or NULL as long as libmsprofiler.so isn't loaded. */
const struct sim_profiler *process_profiler(void);

#endif
