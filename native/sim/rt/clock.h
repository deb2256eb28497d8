/* The device's clock. sim_clock_ns (sim.h) reads it. */
#ifndef OPSTREAM_SIM_CLOCK_H
#define OPSTREAM_SIM_CLOCK_H

#include <stdint.h>

/* Blocks until the device's clock has reached `tick_ns`; at once when it has. */
void clock_wait(uint64_t tick_ns);

#endif
