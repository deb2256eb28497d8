/* Stamps live in a fixed number of slots. */
#ifndef OPSTREAM_SIM_STAMP_H
#define OPSTREAM_SIM_STAMP_H

#include <stdbool.h>

/* Collection of stamps starts or stops: outside, none can be made. Any thread. */
void stamp_collect(bool on);

/* aclprofFinalize: slots of stamps that still live are lost for the process, and the stack is empty again. */
void stamp_lose_all(void);

#endif
