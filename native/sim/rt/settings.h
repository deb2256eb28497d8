/* What the environment says about the simulator, read once per process. */
#ifndef OPSTREAM_SIM_SETTINGS_H
#define OPSTREAM_SIM_SETTINGS_H

#include <stdint.h>

struct settings {
    double speed; /* 0 = unthrottled */
    uint32_t devices;
    uint64_t clock_offset_ns;
    char complaint[200]; /* what is wrong with the environment, "" when nothing is; the value in question has its default then */
};

/* Any thread. */
const struct settings *settings(void);

#endif
