/* What the two halves of the simulator say to each other.
 *
 * libascendcl.so runs models (runtime half); libmsprofiler.so profiles them (profiling half). The second links the first, never the
 * other way round: an application may load only libascendcl.so, and the agent brings libmsprofiler.so in later. So the runtime half
 * calls the profiling half through a table of functions that the latter's constructor hands over.
 */
#ifndef OPSTREAM_SIM_H
#define OPSTREAM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_MAX_DEVICES 64u

#pragma GCC visibility push(default)

/* The profiling half's functions. All may be called from any thread. */
struct sim_profiler {
    /* One operator has ended on `device`. Times are ticks of the device's clock, in nanoseconds. `name` and `type` are read during the call
     * only. Blocks while the device's queue is full (as the real one stalls its producer); returns at once when nobody subscribed. */
    void (*record)(uint32_t device, uint32_t model_id, const char *name, const char *type, uint64_t start_ns, uint64_t end_ns);
    /* A model was unloaded; its subscription, if it has one, stays: unsubscribing answers 100011 then. */
    void (*model_unloaded)(uint32_t model_id);
};

/* Hands over the table; `profiler` must live as long as the process. Called once, by libmsprofiler.so's constructor. */
void sim_attach_profiler(const struct sim_profiler *profiler);

/* Whether aclInit has succeeded (and aclFinalize has not been called since). */
bool sim_initialised(void);

/* The device on which `model_id` is loaded; false when no such model is loaded. */
bool sim_model_device(uint32_t model_id, uint32_t *ret_device);

/* Number of devices: OPSTREAM_SIM_DEVICES, default 8, at most SIM_MAX_DEVICES. */
uint32_t sim_device_count(void);

/* The device's clock: CLOCK_MONOTONIC plus OPSTREAM_SIM_CLOCK_OFFSET_NS (default 86400000000000: a client must not take the device's clock
 * for the host's). */
uint64_t sim_clock_ns(void);

/* OPSTREAM_SIM_SPEED: a factor on the workload's time (default 1 = real time; 0 here = unthrottled). */
double sim_speed(void);

#pragma GCC visibility pop

#endif
