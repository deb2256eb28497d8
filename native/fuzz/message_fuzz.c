/* Any bytes as a message of the agent socket: what is accepted has one encoding, itself. */
#include <stdlib.h>
#include <string.h>

#include "opstream.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct opstream_message message;
    uint8_t again[OPSTREAM_MESSAGE_BYTES];
    if (opstream_message_parse(bytes, length, &message)) {
        return 0;
    }
    if (opstream_message_encode(&message, again)) {
        abort();
    }
    /* Of another version only its beginning is known. */
    if (memcmp(bytes, again, message.version == OPSTREAM_PROTOCOL_VERSION ? sizeof(again) : 8)) {
        abort();
    }
    return 0;
}
