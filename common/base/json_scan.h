// SPDX-License-Identifier: Apache-2.0
// Where the strings, values, elements and members of a JSON text begin and end. It follows quotes, brackets and commas
// only. The reader of the values (json.h) checks numbers, escapes and UTF-8. It uses no memory.
#pragma once

#include "common/base/le.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool json_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Returns the first byte from p that is special: a quote, a backslash, a control character, or a byte over 0x7f; `end`
// if there is none. Looks at sixteen bytes together. If one of them is special, it returns that one at once, because
// most strings are short.
static inline const char *json_plain_end(const char *p, const char *end)
{
    typedef signed char block __attribute__((vector_size(16)));
    for (; end - p >= 16; p += 16) {
        block v;
        char special[16];
        memcpy(&v, p, sizeof v);
        v = (v < 0x20) | (v == '"') | (v == '\\'); // signed: over 0x7f is below 0x20
        memcpy(special, &v, sizeof special);
        uint64_t lo = le_get_u64(special), hi = le_get_u64(special + 8);
        if (lo)
            return p + __builtin_ctzll(lo) / 8;
        if (hi)
            return p + 8 + __builtin_ctzll(hi) / 8;
    }
    while (p < end && (signed char)*p >= 0x20 && *p != '"' && *p != '\\')
        p++;
    return p;
}

// `p` is at the opening quote. Returns the byte after the closing quote; NULL if there is none before `end`.
const char *json_string_end(const char *p, const char *end);

// Finds the end of one value. The bytes may arrive in pieces.

enum { JSON_SKIP_PAIRED_MAX = 128 };

struct json_skip {
    size_t depth;
    uint64_t lists[JSON_SKIP_PAIRED_MAX / 64]; // `paired`: a bit for each open bracket
    bool in_string, escaped, scalar;
    bool paired; // set it after the start: then "[}" and values deeper than JSON_SKIP_PAIRED_MAX are broken. Without
                 // it, brackets are only counted, which is faster
    bool broken;
};

// Starts a value with its first byte; false if no value starts with this byte. Then feed the bytes from `first` on.
bool json_skip_start(struct json_skip *s, char first);
// Returns how many of the bytes belong to the value. *ret_ended: the value ends there. A number or a word ends before
// the byte that follows it. A broken value does not end, and nothing more can be fed.
size_t json_skip_feed(struct json_skip *s, const char *bytes, size_t n, bool *ret_ended);

// The elements of a list or the members of an object, one after the other.

struct json_scan {
    const char *p, *end; // the rest of the text
    char close;          // ']' or '}'
    int state;           // private
    bool counts;         // may be set: brackets in the values are counted only, at any depth
};

struct json_item {
    const char *key; // of a member: without quotes, escapes as they are; NULL in a list
    size_t key_len;
    const char *text; // the value, no blanks around it
    size_t len;
};

static inline bool json_item_is(const struct json_item *m, const char *key)
{
    return m->key_len == strlen(key) && memcmp(m->key, key, m->key_len) == 0;
}

// 1: *s stands before the first element. 0: the document is not a list or object.
int json_scan_begin(struct json_scan *s, const char *json, size_t len);
// Continues at `rest`, the position of another scan after an element of a list.
void json_scan_resume(struct json_scan *s, const char *rest, size_t len);
// 1: *ret is the next element. 0: that was the last one, and only blanks follow. Negative: not JSON; s->p is where.
int json_scan_next(struct json_scan *s, struct json_item *ret);
// Whether the text is one value and nothing else. Only strings and brackets are checked, which is enough to put the
// text into a document: it cannot end the value around it.
bool json_scan_one(const char *json, size_t len);
