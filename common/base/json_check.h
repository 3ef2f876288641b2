// SPDX-License-Identifier: Apache-2.0
// Checks whether a text is one JSON document, by the same grammar as json.h, with any number of values. U+0000 is
// refused in any spelling. The bytes may come in any parts, so a long text can be checked in slices. The check reports
// where the long values near the root are, so a reader need not search for their ends again. It uses no memory.
#pragma once

#include "common/base/json.h"

enum { JSON_LONG = 16 * 1024, JSON_LONGS_MAX = 16 };

struct json_long { // a string, list or object of JSON_LONG bytes or more
    size_t at, len;
    uint8_t depth; // 1: a member of the root, which is an object; 2: a member of such a member, which is an object
};

struct json_check {                         // {0} is the start
    size_t at;                              // bytes that were fed, up to the one that is wrong
    unsigned longs_n;                       // how many long values have ended
    struct json_long longs[JSON_LONGS_MAX]; // the first of them, in the order of their ends
    // private
    struct json_grammar grammar;
    size_t begins[3]; // offset of the open list or object, by its depth
};

// Returns false if the text is not JSON. Feed nothing more after that.
bool json_check_feed(struct json_check *s, const char *bytes, size_t n);
// Call it after the last byte. Returns true if the text is a whole document.
bool json_check_ends(const struct json_check *s);
