// SPDX-License-Identifier: Apache-2.0
#include "common/base/utf8.h"

#include <stdint.h>
#include <string.h>

static bool begin(struct utf8 *u, unsigned char c)
{
    if (c < 0x80)
        *u = (struct utf8){0};
    else if (c >= 0xc2 && c <= 0xdf)
        *u = (struct utf8){1, 0x80, 0xbf};
    else if ((c & 0xf0) == 0xe0) // no overlong forms, no surrogates
        *u = (struct utf8){2, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf};
    else if (c >= 0xf0 && c <= 0xf4)
        *u = (struct utf8){3, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf};
    else
        return false;
    return true;
}

bool utf8_feed(struct utf8 *u, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint64_t word;
        while (!u->need && i + sizeof word <= len) { // text is mostly ASCII
            memcpy(&word, data + i, sizeof word);
            if (word & 0x8080808080808080u)
                break;
            i += sizeof word;
        }
        if (i == len)
            break;
        unsigned char c = (unsigned char)data[i];
        if (!u->need) {
            if (!begin(u, c))
                return false;
            continue;
        }
        if (c < u->low || c > u->high)
            return false;
        *u = (struct utf8){(unsigned char)(u->need - 1), 0x80, 0xbf};
    }
    return true;
}
