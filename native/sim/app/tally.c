#include "tally.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void print_text(const char *text) {
    putchar('"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\' || *c < 0x20) {
            printf("\\u%04x", *c);
        } else {
            putchar(*c);
        }
    }
    putchar('"');
}

static bool is_first_of_type(const struct workload *workload, size_t i) {
    for (size_t before = 0; before < i; before++) {
        if (strcmp(workload->operators[before].type, workload->operators[i].type) == 0) {
            return false;
        }
    }
    return true;
}

static void print_type(const struct workload *workload, const char *type, uint64_t executions) {
    uint64_t count = 0, sum_ns = 0;
    for (size_t i = 0; i < workload->operator_count; i++) {
        if (strcmp(workload->operators[i].type, type) == 0) {
            count++;
            sum_ns += workload->operators[i].duration_ns;
        }
    }
    print_text(type);
    printf(": {\"count\": %" PRIu64 ", \"nanoseconds\": %" PRIu64 "}", executions * count, executions * sum_ns);
}

void tally_print(const struct workload *workload, uint64_t executions) {
    printf("{\"executions\": %" PRIu64 ", \"records\": %" PRIu64 ", \"op_types\": {", executions,
           executions * (workload->operator_count + 1));
    const char *between = "";
    for (size_t i = 0; i < workload->operator_count; i++) {
        if (is_first_of_type(workload, i)) {
            fputs(between, stdout);
            print_type(workload, workload->operators[i].type, executions);
            between = ", ";
        }
    }
    puts("}}");
}
