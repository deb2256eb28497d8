/* label.h: text that becomes a label: whole UTF-8 characters, and a length that has an end. Any thread. */
#ifndef OPSTREAM_LABEL_H
#define OPSTREAM_LABEL_H

#include <stddef.h>
#include <stdint.h>

#define LABEL_HASH_DIGITS 16u

/* Length (1 to 4) of the UTF-8 character at `bytes`, 0 when there is none. A NUL is none. `length` > 0. */
size_t label_character(const char *bytes, size_t length);

/* Bytes of the longest part of `text` from its beginning that is at most `max` long and doesn't cut a character in two. */
size_t label_fitting(const char *text, size_t length, size_t max);

/* 64-bit FNV-1a: the same in all processes and versions, as equal names must stay equal when they are cut. */
uint64_t label_hash(const char *text, size_t length);

/* Cuts what is longer than `max` (at least LABEL_HASH_DIGITS) bytes: its beginning, then the hash of the whole in 16 hex digits, `max`
 * bytes together, or up to three fewer where a character would be cut in two. Writes at most `max` bytes, no NUL; returns their number. */
size_t label_cut(const char *text, size_t length, size_t max, char *ret_text);

#endif
