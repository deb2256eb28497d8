/* subscription.h: which models are subscribed on which device. Control thread only; every vendor call here is made with all signals
 * blocked, and SIGINT's disposition is put back.
 *
 * All models of a device share its pipe (device_pipe.h). All devices go on and off together: when one of them must be subscribed after it
 * had gone off while another stayed on, all are unsubscribed and subscribed again (the vendor's bookkeeping breaks otherwise). */
#ifndef OPSTREAM_SUBSCRIPTION_H
#define OPSTREAM_SUBSCRIPTION_H

#include "reader.h"

struct subscriptions;

/* `vendor` is filled at the first subscriptions_add. `library_path` (may be NULL) is copied. */
int subscriptions_new(const char *library_path, struct vendor *vendor, struct segment_writer *writer, struct reader *reader,
                      struct subscriptions **ret_subscriptions);

/* After subscriptions_remove_all. Write ends that the vendor has not closed are taken from it; so before the reader stops. */
void subscriptions_free(struct subscriptions *subscriptions);

/* As opstream_publisher_subscribe and opstream_publisher_unsubscribe say. A model that is added while the others are paused is subscribed
 * when they are. One that can't be subscribed stays (unless the vendor doesn't know it): subscriptions_resume tries it again. */
int subscriptions_add(struct subscriptions *subscriptions, uint32_t model_id, uint32_t device, const char *name, int *ret_acl_error);
int subscriptions_remove(struct subscriptions *subscriptions, uint32_t model_id, int *ret_acl_error);
void subscriptions_remove_all(struct subscriptions *subscriptions);

/* Unsubscribes all (state `paused`), until subscriptions_resume. */
void subscriptions_pause(struct subscriptions *subscriptions);

/* Subscribes all that are not. The first failure's status; then the call can be repeated for those that failed. Where the vendor's profiler
 * is somebody else's (100042, 148046, 148047) their state is `paused`, else `failed`. */
int subscriptions_resume(struct subscriptions *subscriptions);

/* To be called now and then: a write end that is not ours any more is taken from the vendor, before more is written into a stranger's
 * file. */
void subscriptions_check(const struct subscriptions *subscriptions);

/* Whether a model is subscribed right now. */
bool subscriptions_any(const struct subscriptions *subscriptions);

/* Whether a model isn't that should be. */
bool subscriptions_any_failed(const struct subscriptions *subscriptions);

#endif
