/* frame.h: from a pipe's bytes to whole records: carries partial ones over, and finds the next good record after corruption. One per pipe;
 * reader thread only. */
#ifndef OPSTREAM_FRAME_H
#define OPSTREAM_FRAME_H

#include <stdbool.h>

#include "vendor.h"

#define FRAME_BUFFER_BYTES (1u << 20)

/* All of it is the frame's own. */
struct frame {
    const struct vendor *vendor;
    size_t record_bytes;
    size_t begin, end; /* of the bytes that are in no given record */
    bool in_run;
    uint64_t run_bytes; /* of the unfinished corrupt run: what lies before `begin` */
    uint8_t *buffer;
    size_t buffer_bytes;
};

/* What skipping over a corrupt run gave: ⌊bytes / record size⌋ records that count as read and corrupt, and the bytes that remain. */
struct frame_loss {
    uint64_t corrupt_records;
    uint64_t discarded_bytes;
};

int frame_new(const struct vendor *vendor, size_t record_bytes, struct frame **ret_frame);
void frame_free(struct frame *frame);

/* Where to read into, and how much of it was filled. The room is never 0 once the caller has taken every record that frame_next gives. */
uint8_t *frame_room(struct frame *frame, size_t *ret_bytes);
void frame_filled(struct frame *frame, size_t bytes);

/* Moves on to the first good record. false: none is at hand; only bytes that may be the beginning of one are kept. For frame_next. */
bool frame_seek_good(struct frame *frame, struct frame_loss *loss);

/* The next whole record (valid until the next frame_room), or NULL when more bytes are needed. Not yet checked: the decoder finds out.
 * The loss of a corrupt run that ends before this record is added to *loss. */
static inline const uint8_t *frame_next(struct frame *frame, struct frame_loss *loss) {
    if (frame->in_run && !frame_seek_good(frame, loss)) {
        return NULL;
    }
    if (frame->end - frame->begin < frame->record_bytes) {
        return NULL;
    }
    const uint8_t *record = frame->buffer + frame->begin;
    frame->begin += frame->record_bytes;
    return record;
}

/* The record that frame_next gave last is corrupt (aclprofGetOpNum refused it), and a run of corrupt bytes starts with it. frame_next
 * asks the vendor's checksum at each following offset for the next good record, through as many fills as it takes, and ends the run
 * there. */
void frame_reject(struct frame *frame);

/* Nothing came for a second: a run whose end has not been found and that is a whole number of records ends here; its loss is added to
 * *loss. */
void frame_idle(struct frame *frame, struct frame_loss *loss);

/* Nothing will ever come: all that is at hand is a corrupt run, whatever its length. */
void frame_finish(struct frame *frame, struct frame_loss *loss);

/* Bytes at hand that belong to no given record (carried over, or in an unfinished run). */
size_t frame_pending_bytes(const struct frame *frame);

#endif
