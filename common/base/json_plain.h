// SPDX-License-Identifier: Apache-2.0
// The inside of JSON strings, where most bytes of an object of the API server are.
#ifndef CADRE_BASE_JSON_PLAIN_H
#define CADRE_BASE_JSON_PLAIN_H

#include "common/base/le.h"

// The first byte from p that is no plain one: a quote, a backslash, a control character or over 0x7f; `end` if all
// are. Sixteen at a time, and where one of them is found it is gone to at once: most strings are short.
static inline const char *json_plain_end(const char *p, const char *end)
{
    typedef signed char lanes __attribute__((vector_size(16)));
    for (; end - p >= 16; p += 16) {
        lanes v;
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

#endif
