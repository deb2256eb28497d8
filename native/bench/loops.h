/* loops.h: ways to decode a stream, from a pipe's read end to its end of file, each as somebody would write it. They return the number of
 * records, and close the descriptor. */
#ifndef OPSTREAM_BENCH_LOOPS_H
#define OPSTREAM_BENCH_LOOPS_H

#include "stream.h"

/* As the vendor's sample does: ten records a buffer, every getter, lengths asked first. */
uint64_t loop_sample(const struct stream *stream, int read_fd);

/* What nobody can do without: the two string getters, one record a call. */
uint64_t loop_strings(const struct stream *stream, int read_fd);

/* The engine: reader thread, segment and all. A new reader for each call. */
uint64_t loop_engine(const struct stream *stream, int read_fd);

#endif
