/* descriptor.h: descriptors of ours in the table of somebody else's process: out of its way, and recognised before they are used. Any
 * thread. */
#ifndef OPSTREAM_DESCRIPTOR_H
#define OPSTREAM_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

/* Moves a descriptor to a high number (close-on-exec), where applications that count on low ones don't meet it. Returns the new number,
 * or `fd` itself when that can't be. */
int descriptor_raise(int fd);

struct descriptor_identity {
    dev_t device;
    ino_t inode;
};

/* What `fd` refers to. Pipes, sockets, memfds and files have an identity; eventfds all share one. */
struct descriptor_identity descriptor_identify(int fd);

/* Whether the number still refers to it: the application may have closed and reused it. */
bool descriptor_is(int fd, const struct descriptor_identity *identity);

#endif
