#include "settings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "sim.h"

static struct settings values = {.speed = 1, .devices = 8, .clock_offset_ns = UINT64_C(86400000000000)};
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Whether `variable` is set to a number in [least, most] of units of 10^-decimals. */
static bool read_number(const char *variable, unsigned decimals, uint64_t least, uint64_t most, const char *wanted, uint64_t *ret_value) {
    const char *text = getenv(variable);
    uint64_t value = 0;
    if (!text) {
        return false;
    }
    if (decimal_parse(text, strlen(text), decimals, &value) != DECIMAL_OK || value < least || value > most) {
        snprintf(values.complaint, sizeof values.complaint, "%s is \"%.40s\", but must be %s", variable, text, wanted);
        return false;
    }
    *ret_value = value;
    return true;
}

static void read_environment(void) {
    uint64_t number = 0;
    const char *speed = getenv("OPSTREAM_SIM_SPEED");

    if (speed && strcmp(speed, "unthrottled") == 0) {
        values.speed = 0;
    } else if (read_number("OPSTREAM_SIM_SPEED", 6, 0, UINT64_C(1000000000000),
                           "\"unthrottled\" or a number from 0.001 to 1000000 (0 = unthrottled)", &number)) {
        if (number > 0 && number < 1000) {
            snprintf(values.complaint, sizeof values.complaint, "OPSTREAM_SIM_SPEED is \"%.40s\", but must be 0 or at least 0.001", speed);
        } else {
            values.speed = (double)number / 1e6;
        }
    }
    if (read_number("OPSTREAM_SIM_DEVICES", 0, 1, SIM_MAX_DEVICES, "a whole number from 1 to 64", &number)) {
        values.devices = (uint32_t)number;
    }
    if (read_number("OPSTREAM_SIM_CLOCK_OFFSET_NS", 0, 0, UINT64_C(1000000000000000000), "a whole number from 0 to 10^18", &number)) {
        values.clock_offset_ns = number;
    }
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
