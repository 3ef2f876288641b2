// SPDX-License-Identifier: Apache-2.0
// Finds where the elements of a JSON list or the members of an object begin and end, without looking further into them:
// strings, brackets and commas, no numbers and no UTF-8. The caller parses the elements. No memory is used.
#ifndef CADRE_WIRE_SCAN_H
#define CADRE_WIRE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

enum { SCAN_DEPTH_MAX = 128 };

struct scan {
    const char *p, *end; // what is left
    char close;          // ']' or '}'
    int state;           // private
};

struct scan_item {
    const char *key; // of a member: without quotes, escapes as they are; NULL in a list
    size_t key_len;
    const char *text; // the value, no blanks around it
    size_t len;
};

// 1: *s stands in front of the first element. 0: the document is no list or object.
int scan_begin(struct scan *s, const char *json, size_t len);
// 1: *ret is the next element. 0: that was all, and nothing but blanks follows. Negative: no JSON; s->p is where.
int scan_next(struct scan *s, struct scan_item *ret);
// The text is one value and nothing else, as far as this looks: it cannot end what it is put into.
bool scan_one(const char *json, size_t len);

#endif
