// SPDX-License-Identifier: Apache-2.0
// UTF-8 (RFC 3629) in parts that may be cut anywhere.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct utf8 {                // all zero to begin with
    unsigned char need;      // continuation bytes still to come
    unsigned char low, high; // range of the next one
};

bool utf8_feed(struct utf8 *u, const char *data, size_t len); // false: the text is not valid with these bytes
static inline bool utf8_complete(const struct utf8 *u)
{
    return u->need == 0;
}
