/* drain WAY RECORDS [PAIRS]: how fast a way of decoding drains the vendor's stream; one line of JSON.
 * WAY: sample, strings, engine; or pairs: engine and strings by turns, PAIRS of them, each of RECORDS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loops.h"

typedef uint64_t loop(const struct stream *stream, int read_fd);

static double ns_per_record(struct stream *stream, loop *way, uint64_t records) {
    uint64_t begin = bench_now_ns();
    uint64_t got = way(stream, stream_feed(stream, records));
    uint64_t end = bench_now_ns();
    if (way != loop_engine) {
        stream_fed();
    }
    if (got != records) {
        bench_fail("records drained", (int)got);
    }
    return (double)(end - begin) / (double)records;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void pairs(struct stream *stream, uint64_t records, uint64_t number) {
    double *engine = calloc(number, sizeof *engine), *strings = calloc(number, sizeof *strings), *beyond = calloc(number, sizeof *beyond);
    for (uint64_t i = 0; i < number; i++) {
        engine[i] = ns_per_record(stream, loop_engine, records);
        strings[i] = ns_per_record(stream, loop_strings, records);
        beyond[i] = engine[i] - strings[i];
    }
    qsort(engine, number, sizeof *engine, by_value);
    qsort(strings, number, sizeof *strings, by_value);
    qsort(beyond, number, sizeof *beyond, by_value);
    printf("{\"pairs\": %lu, \"records\": %lu, \"engine_ns\": %.1f, \"strings_ns\": %.1f, \"beyond_ns\": %.1f}\n", number, records,
           engine[number / 2], strings[number / 2], beyond[number / 2]);
    free(engine);
    free(strings);
    free(beyond);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s sample|strings|engine|pairs RECORDS [PAIRS]\n", argv[0]);
        return 2;
    }
    uint64_t records = strtoull(argv[2], NULL, 10), number = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    struct stream stream;
    stream_open("llm-decode", &stream);
    if (strcmp(argv[1], "pairs") == 0) {
        stream_make(&stream, 2 * records * number);
        pairs(&stream, records, number);
        return 0;
    }
    loop *way = strcmp(argv[1], "sample") == 0    ? loop_sample
                : strcmp(argv[1], "strings") == 0 ? loop_strings
                : strcmp(argv[1], "engine") == 0  ? loop_engine
                                                  : NULL;
    if (way == NULL) {
        bench_fail("no such way", 0);
    }
    stream_make(&stream, records);
    double ns = ns_per_record(&stream, way, records);
    printf("{\"way\": \"%s\", \"records\": %lu, \"ns_per_record\": %.1f}\n", argv[1], records, ns);
    return 0;
}
