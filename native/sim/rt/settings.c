#include "settings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "sim.h"

static struct settings values = {.speed = 1, .devices = 8, .clock_offset_ns = UINT64_C(86400000000000)};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void complain(const char *variable, const char *text, const char *wanted) {
    snprintf(values.complaint, sizeof values.complaint, "%s is \"%.40s\", but must be %s", variable, text, wanted);
}

static void read_speed(const char *variable) {
    const char *text = getenv(variable);
    uint64_t millionths = 0;
    if (!text) {
        return;
    }
    int status = strcmp(text, "unthrottled") == 0 ? DECIMAL_OK : decimal_parse(text, strlen(text), 6, &millionths);
    if (status != DECIMAL_OK || (millionths > 0 && millionths < 1000) || millionths > UINT64_C(1000000000000)) {
        complain(variable, text, "\"unthrottled\" or a number from 0.001 to 1000000 (0 = unthrottled)");
    } else {
        values.speed = (double)millionths / 1e6;
    }
}

/* The value, or `otherwise` when the variable isn't set or malformed. */
static uint64_t read_whole(const char *variable, uint64_t least, uint64_t most, const char *wanted, uint64_t otherwise) {
    const char *text = getenv(variable);
    uint64_t value = 0;
    if (!text) {
        return otherwise;
    }
    if (decimal_parse(text, strlen(text), 0, &value) != DECIMAL_OK || value < least || value > most) {
        complain(variable, text, wanted);
        return otherwise;
    }
    return value;
}

static void read_environment(void) {
    read_speed("OPSTREAM_SIM_SPEED");
    values.devices = (uint32_t)read_whole("OPSTREAM_SIM_DEVICES", 1, SIM_MAX_DEVICES, "a whole number from 1 to 64", values.devices);
    values.clock_offset_ns = read_whole("OPSTREAM_SIM_CLOCK_OFFSET_NS", 0, UINT64_C(1000000000000000000), "a whole number from 0 to 10^18",
                                        values.clock_offset_ns);
}

const struct settings *settings(void) {
    pthread_once(&once, read_environment);
    return &values;
}

uint32_t sim_device_count(void) {
    return settings()->devices;
}

double sim_speed(void) {
    return settings()->speed;
}
