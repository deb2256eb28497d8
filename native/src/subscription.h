/* subscription.h: which models are subscribed on which device, through which pipe. Control thread only; every vendor call here is made with all signals blocked, and SIGINT's disposition is put back.
 *
 * One pipe per device. The int that the vendor keeps a pointer to lives as long as the process, and is one per device. All devices go on and off together: when one of them must be subscribed after
 * it had gone off while another stayed on, all are unsubscribed and subscribed again (the vendor's bookkeeping breaks otherwise). */
#ifndef OPSTREAM_SUBSCRIPTION_H
#define OPSTREAM_SUBSCRIPTION_H

#include "reader.h"

struct subscriptions;

int subscriptions_new(const struct vendor *vendor, struct segment_writer *writer, struct reader *reader, struct subscriptions **ret_subscriptions);
void subscriptions_free(struct subscriptions *subscriptions);

int subscriptions_add(struct subscriptions *subscriptions, uint32_t model_id, uint32_t device, const char *name, int *ret_acl_error);
int subscriptions_remove(struct subscriptions *subscriptions, uint32_t model_id, int *ret_acl_error);

/* Unsubscribes all (state `paused`), and subscribes all again. */
int subscriptions_pause(struct subscriptions *subscriptions);
int subscriptions_resume(struct subscriptions *subscriptions);
bool subscriptions_any(const struct subscriptions *subscriptions);

#endif
