#include "frame.h"

#include <stdlib.h>
#include <string.h>

int frame_new(const struct vendor *vendor, size_t record_bytes, struct frame **ret_frame) {
    if (record_bytes == 0) {
        return OPSTREAM_E_INVALID;
    }
    struct frame *frame = calloc(1, sizeof *frame);
    if (frame == NULL) {
        return OPSTREAM_E_MEMORY;
    }
    frame->vendor = vendor;
    frame->record_bytes = record_bytes;
    frame->buffer_bytes = FRAME_BUFFER_BYTES + record_bytes;
    frame->buffer = malloc(frame->buffer_bytes);
    if (frame->buffer == NULL) {
        free(frame);
        return OPSTREAM_E_MEMORY;
    }
    *ret_frame = frame;
    return OPSTREAM_OK;
}

void frame_free(struct frame *frame) {
    if (frame != NULL) {
        free(frame->buffer);
        free(frame);
    }
}

uint8_t *frame_room(struct frame *frame, size_t *ret_bytes) {
    memmove(frame->buffer, frame->buffer + frame->begin, frame->end - frame->begin);
    frame->end -= frame->begin;
    frame->begin = 0;
    *ret_bytes = frame->buffer_bytes - frame->end;
    return frame->buffer + frame->end;
}

void frame_filled(struct frame *frame, size_t bytes) {
    frame->end += bytes;
}

static void end_run(struct frame *frame, struct frame_loss *loss) {
    loss->corrupt_records += frame->run_bytes / frame->record_bytes;
    loss->discarded_bytes += frame->run_bytes % frame->record_bytes;
    frame->in_run = false;
    frame->run_bytes = 0;
}

bool frame_seek_good(struct frame *frame, struct frame_loss *loss) {
    for (; frame->end - frame->begin >= frame->record_bytes; frame->begin++, frame->run_bytes++) {
        uint32_t number = 0;
        if (frame->vendor->get_op_num(frame->buffer + frame->begin, frame->record_bytes, &number) == 0) {
            end_run(frame, loss);
            return true;
        }
    }
    return false;
}

void frame_reject(struct frame *frame) {
    frame->begin -= frame->record_bytes - 1;
    frame->run_bytes = 1;
    frame->in_run = true;
}

void frame_idle(struct frame *frame, struct frame_loss *loss) {
    if (frame->in_run && frame_pending_bytes(frame) % frame->record_bytes == 0) {
        frame_finish(frame, loss);
    }
}

void frame_finish(struct frame *frame, struct frame_loss *loss) {
    frame->run_bytes = frame_pending_bytes(frame);
    frame->begin = frame->end;
    end_run(frame, loss);
}

size_t frame_pending_bytes(const struct frame *frame) {
    return frame->run_bytes + (frame->end - frame->begin);
}
