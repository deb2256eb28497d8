/* The process's name table: the strings that a record leaves behind, until a getter fetches them.
 *
 * Every record has an index of its own; its name and its type can each be had once. What nobody fetches lives as long as the process:
 * unsubscribing frees nothing. All functions may be called from any thread; they share one lock.
 *
 * The first names_add registers an exit handler that takes the table's memory away: whoever touches the table later crashes. Handlers run
 * in the reverse order of their registration, so a client's handler runs before it only when registered after the first record. */
#ifndef OPSTREAM_SIM_NAMES_H
#define OPSTREAM_SIM_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum names_text { NAMES_NAME, NAMES_TYPE };

/* Copies both strings and returns their index. A process without memory for them is aborted. */
uint64_t names_add(const char *name, const char *type);

/* The next string getter for `index` fails with 500005, or, with `always`, every one. */
void names_refuse(uint64_t index, bool always);

/* The length with the NUL; 100000 when there is no such string (any more). */
int names_length(uint64_t index, enum names_text which, size_t *ret_bytes);

/* Copies the string into `text` as aclprofGetOpName does, and frees it. 100000: none there, or `text_bytes` is too short. */
int names_take(uint64_t index, enum names_text which, char *text, size_t text_bytes);

#endif
