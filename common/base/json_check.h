// SPDX-License-Identifier: Apache-2.0
// Whether a text is one document of RFC 8259: as strict as json.h, with any number of values, nested up to
// JSON_DEPTH_MAX; U+0000 is refused in any spelling. The bytes may come in any parts, so a long text can be checked in
// slices. It reports where the long values near the root are, so a reader need not search for their ends again. It uses
// no memory.
#pragma once

#include "common/base/json.h"
#include "common/base/utf8.h"

enum { JSON_LONG = 16 * 1024, JSON_LONGS_MAX = 16 };

struct json_long { // a string, list or object of JSON_LONG bytes or more
    size_t at, len;
    uint8_t depth; // 1: a member of the root, which is an object; 2: a member of such a member, which is an object
};

struct json_check {   // {0} is the start
    size_t at;        // bytes that were fed, up to the one that is wrong
    unsigned longs_n; // the first JSON_LONGS_MAX of them are known; in the order of their ends
    struct json_long longs[JSON_LONGS_MAX];
    // private
    size_t begins[3]; // of the value that is open at that depth
    uint8_t state;
    uint8_t depth;
    uint64_t lists[JSON_DEPTH_MAX / 64]; // a bit for each open bracket
    bool key;                            // the string is a name
    struct utf8 utf8;                    // of a character of several bytes
    uint8_t hex;                         // digits of an escape that have come
    bool second;                         // the escape is the second of a pair
    uint16_t code;
    const char *word; // the bytes of true, false or null that must follow
};

// False: the text is not JSON. Then nothing more can be fed.
bool json_check_feed(struct json_check *s, const char *bytes, size_t n);
// Call it after the last byte: whether the text was a whole document.
bool json_check_ends(const struct json_check *s);
