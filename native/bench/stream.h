/* stream.h: the vendor's records without the vendor's writer: the simulator writes them into a memfd, and a thread feeds them into a pipe
 * in large writes. So whoever drains the pipe is the slower side, whichever way it decodes, and all ways get the same records. Names and
 * types wait in the vendor's table of this process until a getter fetches them. Any failure ends the program: a bench has nobody to answer
 * to. */
#ifndef OPSTREAM_BENCH_STREAM_H
#define OPSTREAM_BENCH_STREAM_H

#include <stddef.h>
#include <stdint.h>

struct stream {
    uint32_t model_id;
    size_t record_bytes;
    uint64_t records;
    int file;       /* memfd that holds them */
    uint64_t taken; /* records fed so far */
};

/* Initialises AscendCL and loads the workload unthrottled on device 0. Once per process. */
void stream_open(const char *workload, struct stream *ret_stream);

/* Executes the model until at least `records` further records are in the file. */
void stream_make(struct stream *stream, uint64_t records);

/* A pipe of 1 MiB; its read end is returned. A thread of its own writes the next `records` records into it, then closes it. */
int stream_feed(struct stream *stream, uint64_t records);

/* Waits until the feeding thread has ended. */
void stream_fed(void);

uint64_t bench_now_ns(void);

/* Ends the program with what failed. */
_Noreturn void bench_fail(const char *what, int code);

#endif
