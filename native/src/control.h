/* control.h: the control thread: subscribes and unsubscribes for whoever asks, talks to the daemon, and takes the models off while the
 * reader can't follow. It never touches a record.
 *
 * All its signals are blocked, and so are those of the threads that the vendor starts from it: a SIGPIPE can't kill the process from
 * there. */
#ifndef OPSTREAM_CONTROL_H
#define OPSTREAM_CONTROL_H

#include "link.h"
#include "reader.h"

struct control;

/* Starts the thread. `vendor` is filled at the first subscription, from `library_path` (copied; may be NULL) too. `link` may be NULL (no
 * daemon); all four outlive the thread, and only it uses them (but link_state). Any thread. */
int control_start(const char *library_path, struct vendor *vendor, struct segment_writer *writer, struct reader *reader, struct link *link,
                  struct control **ret_control);

/* All wait until the control thread has done it, or the time is over; any thread, several at once. As the opstream_publisher_… of the same
 * name say. */
int control_subscribe(struct control *control, uint32_t model_id, uint32_t device, const char *name, uint64_t wait_ns, int *ret_acl_error);
int control_unsubscribe(struct control *control, uint32_t model_id, uint64_t wait_ns, int *ret_acl_error);
int control_unsubscribe_all(struct control *control, uint64_t wait_ns);
int control_suspend(struct control *control, uint64_t wait_ns);
int control_restore(struct control *control);

/* The process is in exit(): everything is unsubscribed, the daemon is told goodbye, and nothing is subscribed any more. Waits for it a
 * second at most. Any thread, but not the control thread. */
void control_leave(struct control *control);

/* The same, then ends the thread and frees everything. Waits as long as it takes. When no other call is under way. NULL does nothing. */
void control_stop(struct control *control);

#endif
