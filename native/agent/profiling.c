/* The application's own profiling. The vendor knows one client at a time, so before each such call ours is off, and its answer is the one
 * that the application would have got alone; ours comes back when the application is done: at once, when the call began nothing. */
#include <stdatomic.h>

#include "agent.h"
#include "real.h"

static atomic_uint subscriptions; /* of the application's */
static atomic_bool collecting;

/* False: not ours to see, nothing is held. */
static bool stand_aside(void) {
    struct agent_visit visit;
    bool ours = agent_visit_begin(&visit) && agent_initialised();
    if (ours) {
        agent_hold();
    }
    agent_visit_end(&visit);
    return ours;
}

static void come_back(unsigned times) {
    struct agent_visit visit;
    if (agent_visit_begin(&visit)) {
        for (unsigned i = 0; i < times; i++) {
            agent_release();
        }
    }
    agent_visit_end(&visit);
}

/* One subscription fewer; false when there was none. */
static bool count_down(void) {
    unsigned count = atomic_load(&subscriptions);
    while (count > 0 && !atomic_compare_exchange_weak(&subscriptions, &count, count - 1)) {
    }
    return count > 0;
}

#define FORWARD(name, ...)                                                                                                                 \
    real_##name##_function real = REAL(name);                                                                                              \
    if (!real) {                                                                                                                           \
        return REAL_MISSING;                                                                                                               \
    }                                                                                                                                      \
    bool held = stand_aside();                                                                                                             \
    agent_forward_begin();                                                                                                                 \
    int answer = real(__VA_ARGS__);                                                                                                        \
    agent_forward_end()

WRAPPER int aclprofModelSubscribe(uint32_t id, const void *config);
WRAPPER int aclprofModelUnSubscribe(uint32_t id);
WRAPPER int aclprofInit(const char *path, size_t length);
WRAPPER int aclprofFinalize(void);
WRAPPER int aclprofSetConfig(int type, const char *config, size_t length);
WRAPPER int aclprofStart(const void *config);
WRAPPER int aclprofStop(const void *config);

int aclprofModelSubscribe(uint32_t id, const void *config) {
    FORWARD(aclprofModelSubscribe, id, config);
    if (held && answer == 0) {
        atomic_fetch_add(&subscriptions, 1);
    } else if (held) {
        come_back(1);
    }
    return answer;
}

int aclprofModelUnSubscribe(uint32_t id) {
    FORWARD(aclprofModelUnSubscribe, id);
    if (held) {
        come_back(answer == 0 && count_down() ? 2 : 1);
    }
    return answer;
}

int aclprofInit(const char *path, size_t length) {
    FORWARD(aclprofInit, path, length);
    if (held && (answer != 0 || atomic_exchange(&collecting, true))) {
        come_back(1);
    }
    return answer;
}

int aclprofFinalize(void) {
    FORWARD(aclprofFinalize);
    if (held) {
        come_back(answer == 0 && atomic_exchange(&collecting, false) ? 2 : 1);
    }
    return answer;
}

int aclprofSetConfig(int type, const char *config, size_t length) {
    FORWARD(aclprofSetConfig, type, config, length);
    if (held) {
        come_back(1);
    }
    return answer;
}

int aclprofStart(const void *config) {
    FORWARD(aclprofStart, config);
    if (held) {
        come_back(1);
    }
    return answer;
}

int aclprofStop(const void *config) {
    FORWARD(aclprofStop, config);
    if (held) {
        come_back(1);
    }
    return answer;
}
