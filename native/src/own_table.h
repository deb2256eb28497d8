/* own_table.h: a descriptor table of the calling thread's own, so that nothing which the application does to descriptors reaches it, and
 * nothing of the application's is kept open by it. */
#ifndef OPSTREAM_OWN_TABLE_H
#define OPSTREAM_OWN_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Leaves the process's table, and closes everything in the new one but `kept` (which it sorts). false: the kernel refuses, and the thread
 * goes on in the process's table. The calling thread. */
bool own_table_enter(int *kept, size_t kept_count);

/* Moves a descriptor to a number well above `base` (close-on-exec), or leaves it when there is none. With a base that descriptor_raise
 * gave, no number means two things in the process's two tables: for who looks at a trace, for a thread sanitizer, and where there is one
 * table only. */
int own_table_raise(int fd, int base);

#endif
