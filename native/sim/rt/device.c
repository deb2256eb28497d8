#include "device.h"

#include <pthread.h>

#include "context.h"
#include "failure.h"
#include "sim.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    unsigned users;
    struct context *context; /* the default one, there while the device has users */
} devices[SIM_MAX_DEVICES];

aclError device_check(int32_t device) {
    if (!sim_initialised()) {
        return fail(ACL_ERROR_UNINITIALIZE, "aclInit comes first");
    }
    if (device < 0 || (uint32_t)device >= sim_device_count()) {
        return fail(ACL_ERROR_RT_INVALID_DEVICEID, "device %d is not one of the %u devices", device, sim_device_count());
    }
    return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t deviceId) {
    aclError error = device_check(deviceId);
    if (error) {
        return error;
    }
    pthread_mutex_lock(&lock);
    if (devices[deviceId].users == 0) {
        error = context_create((uint32_t)deviceId, &devices[deviceId].context);
    } else {
        error = context_enter(devices[deviceId].context);
    }
    devices[deviceId].users += !error;
    pthread_mutex_unlock(&lock);
    return error;
}

static aclError reset(int32_t device, bool is_forced) {
    aclError error = device_check(device);
    if (error) {
        return error;
    }
    struct context *unused = NULL;
    pthread_mutex_lock(&lock);
    if (devices[device].users > 0) {
        devices[device].users = is_forced ? 0 : devices[device].users - 1;
        if (devices[device].users == 0) {
            unused = devices[device].context;
        }
    } else {
        error = fail(ACL_ERROR_RT_CONTEXT_NULL, "device %d is not in use", device);
    }
    pthread_mutex_unlock(&lock);
    /* Outside the lock, as this waits for the work in the default stream. */
    return unused ? context_destroy(unused) : error;
}

aclError aclrtResetDevice(int32_t deviceId) {
    return reset(deviceId, false);
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
    return reset(deviceId, true);
}

aclError aclrtGetDevice(int32_t *deviceId) {
    uint32_t device = 0;
    if (!deviceId) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtGetDevice: no place for the device");
    }
    aclError error = context_device(&device);
    if (!error) {
        *deviceId = (int32_t)device;
    }
    return error;
}

aclError aclrtGetDeviceCount(uint32_t *count) {
    if (!count) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtGetDeviceCount: no place for the count");
    }
    *count = sim_device_count();
    return ACL_SUCCESS;
}

aclError aclrtGetRunMode(aclrtRunMode *runMode) {
    if (!runMode) {
        return fail(ACL_ERROR_INVALID_PARAM, "aclrtGetRunMode: no place for the mode");
    }
    *runMode = ACL_HOST;
    return ACL_SUCCESS;
}

const char *aclrtGetSocName(void) {
    return "Ascend910B4";
}
