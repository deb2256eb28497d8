/* agent.h: the publisher of somebody else's process. All functions: any thread, several at once too. */
#ifndef OPSTREAM_AGENT_H
#define OPSTREAM_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "opstream.h"

#define AGENT_LOAD_WAIT_NS UINT64_C(500000000)   /* a load is held up so long at most */
#define AGENT_LEAVE_WAIT_NS UINT64_C(2000000000) /* an unload, aclFinalize, the application's own profiling */

/* The process's publisher or NULL. Never blocks: one load. NULL when disabled, before aclInit has returned, and in a forked child until it
 * loads something itself. */
opstream_publisher *agent_publisher(void);

/* Around what a wrapper does besides forwarding: keeps errno and holds back cancellation. False when there is nothing to do: disabled, or
 * called from inside a forwarded call of this thread; agent_visit_end is to be called all the same. */
struct agent_visit {
    int error, cancellation;
    bool counted;
};
bool agent_visit_begin(struct agent_visit *ret_visit);
void agent_visit_end(const struct agent_visit *visit);

/* Around a forwarded call within which the vendor may call what is wrapped. */
void agent_forward_begin(void);
void agent_forward_end(void);

/* aclInit has returned with success, or something has been loaded: the publisher is opened if there is none. NULL when it can't be. */
opstream_publisher *agent_open(void);
bool agent_initialised(void);
void agent_set_initialised(bool initialised);

/* One that is subscribed already, under whatever name, gets this name: its id has been given to another model, or somebody knows a better
 * one. Answers as opstream_publisher_subscribe. */
int agent_subscribe(opstream_publisher *publisher, uint32_t model_id, uint32_t device, const char *name, int *ret_acl_error);

/* A model has been loaded on the thread's device, or is about to be unloaded. Wait as long as said above. */
void agent_loaded(uint32_t model_id, const char *name);
void agent_unloading(uint32_t model_id);

/* The application wants the vendor's profiler to itself until it is released as often; publishers opened later obey too. */
void agent_hold(void);
void agent_release(void);

#endif
