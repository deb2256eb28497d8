/* memfd.h: a sealed memory file, as the publisher makes it and as the daemon demands it. Any thread. */
#ifndef OPSTREAM_MEMFD_H
#define OPSTREAM_MEMFD_H

#include <stdbool.h>
#include <stdint.h>

/* A memfd of that size, O_CLOEXEC, at a high number, not sealed yet. Negative with errno when there is none. */
int memfd_make(uint64_t bytes);

/* SHRINK, GROW, SEAL, and FUTURE_WRITE where the kernel has it: mappings made before can still be written through. −1 with errno when
 * refused. */
int memfd_seal(int fd);

/* Whether it is a memfd on tmpfs, sealed as above, and not larger than max_bytes; its size. OPSTREAM_E_NOT_MEMFD, _E_SIZE, _E_UNSEALED.
 * Never blocks, whatever the descriptor is. */
int memfd_check(int fd, uint64_t max_bytes, uint64_t *ret_bytes);

/* Allocates its pages in a range. To touch one that can't be had would be a SIGBUS. */
bool memfd_allocate(int fd, uint64_t offset, uint64_t bytes);

/* End of the allocated range that `offset` lies in, `offset` when it lies in none. */
uint64_t memfd_allocated_end(int fd, uint64_t offset);

#endif
