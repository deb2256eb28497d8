/* aclInit and aclFinalize. Nothing of the profiler's is called before the first has returned, nor from the second on. */
#include "agent.h"
#include "real.h"

#define REPEATED_INITIALISE 100002

WRAPPER int aclInit(const char *config);
WRAPPER int aclFinalize(void);

int aclInit(const char *config) {
    real_aclInit_function real = REAL(aclInit);
    if (!real) {
        return REAL_MISSING;
    }
    agent_forward_begin();
    int answer = real(config);
    agent_forward_end();
    struct agent_visit visit;
    if ((answer == 0 || answer == REPEATED_INITIALISE) && agent_visit_begin(&visit)) {
        agent_set_initialised(true);
        agent_open();
        agent_visit_end(&visit);
    }
    return answer;
}

/* When it fails, the models are still there, and come back. */
int aclFinalize(void) {
    real_aclFinalize_function real = REAL(aclFinalize);
    if (!real) {
        return REAL_MISSING;
    }
    struct agent_visit visit;
    bool ours = agent_visit_begin(&visit);
    opstream_publisher *publisher = ours ? agent_publisher() : NULL;
    if (ours) {
        agent_hold();
    }
    agent_visit_end(&visit);
    agent_forward_begin();
    int answer = real();
    agent_forward_end();
    if (ours && agent_visit_begin(&visit)) {
        if (answer == 0) {
            agent_set_initialised(false);
        }
        if (answer == 0 && publisher) {
            opstream_publisher_unsubscribe_all(publisher, AGENT_LEAVE_WAIT_NS);
        }
        agent_release();
        agent_visit_end(&visit);
    }
    return answer;
}
