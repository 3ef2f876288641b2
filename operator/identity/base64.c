// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/base64.h"

static const char *const alphabets[] = {
    [BASE64_STANDARD] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    [BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

static int value_of(enum base64_kind kind, char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == alphabets[kind][62] ? 62 : c == alphabets[kind][63] ? 63 : -1;
}

uint8_t *base64_decode(enum base64_kind kind, const char *text, size_t len, struct arena *a, size_t *ret_len)
{
    if (kind == BASE64_STANDARD) {
        if (len % 4)
            return NULL;
        for (int i = 0; i < 2 && len && text[len - 1] == '='; i++)
            len--;
    }
    if (len % 4 == 1)
        return NULL;
    uint8_t *out = arena_alloc(a, len / 4 * 3 + 3);
    uint32_t bits = 0;
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        int v = value_of(kind, text[i]);
        if (v < 0)
            return NULL;
        bits = bits << 6 | (uint32_t)v;
        if (i % 4)
            out[n++] = (uint8_t)(bits >> (6 - i % 4 * 2));
    }
    // The bits of the last character that belong to no byte.
    if ((len % 4 == 2 && bits & 15) || (len % 4 == 3 && bits & 3))
        return NULL;
    out[n] = '\0';
    *ret_len = n;
    return out;
}

char *base64_encode(enum base64_kind kind, const void *bytes, size_t len, struct arena *a)
{
    const uint8_t *in = bytes;
    char *out = arena_alloc(a, (len + 2) / 3 * 4 + 1);
    size_t n = 0;
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t bits = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (left > 2 ? in[i + 2] : 0);
        for (size_t k = 0; k < 4; k++) {
            if (k <= left)
                out[n++] = alphabets[kind][bits >> (18 - 6 * k) & 63];
            else if (kind == BASE64_STANDARD)
                out[n++] = '=';
        }
    }
    out[n] = '\0';
    return out;
}
