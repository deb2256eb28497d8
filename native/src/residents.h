/* residents.h: whose threads are left in this process. Control thread.
 *
 * A program may end its main thread and go on in others; the C library calls exit() when the last thread ends. It counts ours and the
 * vendor's, so that the process would stay for ever, and as those block all signals nothing but SIGKILL could end it. */
#ifndef OPSTREAM_RESIDENTS_H
#define OPSTREAM_RESIDENTS_H

#include <stdbool.h>

/* What every thread of ours is called, and with it the vendor's that such a thread has started: the name is inherited. */
#define RESIDENTS_OURS "opstream-"

/* The main thread has ended, and every thread that is left is ours or the vendor's. A thread that the vendor has given a name of its own
 * counts as the application's: then the process stays, as with any other that the vendor starts. One look may miss a thread that comes while
 * another goes: only two in a row are an answer. False when it can't be told. */
bool residents_are_ours(void);

#endif
