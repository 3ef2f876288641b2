// SPDX-License-Identifier: Apache-2.0
// Whether a text is one document of RFC 8259: strict as json.h, of any number of values, nested up to JSON_DEPTH_MAX;
// U+0000 is refused in any spelling. The bytes may come in any pieces, so that a long text is checked in slices. No
// memory is used.
#ifndef CADRE_BASE_JSON_CHECK_H
#define CADRE_BASE_JSON_CHECK_H

#include "common/base/json.h"

struct json_check { // {0} is the start
    // private
    uint8_t state;
    uint8_t depth;
    uint64_t lists[JSON_DEPTH_MAX / 64]; // a bit for each open bracket
    bool key;                            // the string is a name
    uint8_t left, low, high;             // bytes of a character that are to come, and what the next one may be
    uint8_t hex;                         // digits of an escape that have come
    bool second;                         // the escape is the second of a pair
    uint16_t code;
    const char *word; // what is to come of true, false or null
};

// False: it is no JSON. Nothing more can be fed then.
bool json_check_feed(struct json_check *s, const char *bytes, size_t n);
// That was all: whether it is a whole document.
bool json_check_ends(const struct json_check *s);

#endif
