/* intake.h: all pipes of the process, and the way of their bytes through frame and decoder to the account. Reader thread only, where not
 * told otherwise. */
#ifndef OPSTREAM_INTAKE_H
#define OPSTREAM_INTAKE_H

#include "inlet.h"

struct intake;

/* Allocate and free everything but the pipes. `writer` outlives it. Control thread, without a reader thread. */
int intake_new(struct segment_writer *writer, struct intake **ret_intake);
void intake_free(struct intake *intake);

/* For account_map_model (control thread) and account_restart_model (reader thread). */
struct account *intake_account(const struct intake *intake);

/* `wake_fd` ends intake_wait when it becomes readable. */
int intake_open(struct intake *intake, int wake_fd);
void intake_close(struct intake *intake);

/* Once, before the first pipe; takes the decoder over. */
void intake_set_decoder(struct intake *intake, struct decoder *decoder, size_t record_bytes);

/* Takes a pipe over; the earlier one of the same device is read until its end, or until nothing more is in it when the next one comes. One
 * too many is closed. */
void intake_add(struct intake *intake, struct inlet *inlet);

/* Takes what is in the pipes, counts it and commits. Returns how long the fullest one can be left alone, or UINT64_MAX when nothing was in
 * any. */
uint64_t intake_take_all(struct intake *intake);

/* Takes what is in the pipes now, lets nothing wait for anything later, and commits. A writer that goes on can't hold it up. */
void intake_flush(struct intake *intake);

/* Sleeps until something is in a pipe, the wake descriptor is readable, something that waits is due, or the time is over. */
void intake_wait(struct intake *intake, uint64_t longest_ns);

/* A pipe was over half full at each read for a second. */
bool intake_under_pressure(const struct intake *intake);

/* As reader_on_first_record. Control thread, before the first pipe. */
void intake_on_first_record(struct intake *intake, void (*callback)(void *), void *context);

/* Any thread: from now on bytes are read and discarded. Once intake_is_decoding says no after that, the vendor is not called any more. */
void intake_drain_only(struct intake *intake);
bool intake_is_decoding(const struct intake *intake);

#endif
