/* settings.h: what the environment tells the agent. Read once, at the first use, never in a constructor; later changes of the environment
 * are not seen. Any thread; no allocation. A wrong value counts as absent. */
#ifndef OPSTREAM_AGENT_SETTINGS_H
#define OPSTREAM_AGENT_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct settings {
    char app[128];       /* OPSTREAM_APP, else `app` of OPSTREAM_LABELS, else from the command line (settings_app_of) */
    char socket[108];    /* OPSTREAM_SOCKET, else the user's own daemon's where it is there, else the machine's */
    char labels[512];    /* OPSTREAM_LABELS: "a=b,c=d", without `app` */
    char log[PATH_MAX];  /* OPSTREAM_LOG; "" = none */
    bool disable;        /* OPSTREAM_DISABLE=1: wrappers only forward */
    uint32_t daemon_uid; /* OPSTREAM_DAEMON_UID; UINT32_MAX = nobody besides root and the own uid */
    char ignored[128];   /* the variables whose values aren't understood: "OPSTREAM_A, OPSTREAM_B" */
};

const struct settings *agent_settings(void);

/* The name that a command line (arguments, each ended by a NUL) gives an application. `ret_name` has 128 bytes. */
void settings_app_of(const char *arguments, size_t length, char *ret_name);

#endif
