/* Devices. */
#ifndef OPSTREAM_SIM_DEVICE_H
#define OPSTREAM_SIM_DEVICE_H

#include "acl/acl.h"

/* ACL_SUCCESS when aclInit has succeeded and there is such a device. */
aclError device_check(int32_t device);

#endif
