// SPDX-License-Identifier: Apache-2.0
#include "common/base/str.h"

#include "common/base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool str_eq(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool str_empty(const char *s)
{
    return !s || !*s;
}

bool str_starts(const char *s, const char *prefix)
{
    return s && strncmp(s, prefix, strlen(prefix)) == 0;
}

int str_cmp(const char *a, const char *b)
{
    if (!a || !b)
        return (a != NULL) - (b != NULL);
    return strcmp(a, b);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Compares the digit runs at *a and *b as numbers of any length, and moves both pointers after them.
static int cmp_digits(const char **a, const char **b)
{
    while (**a == '0')
        ++*a;
    while (**b == '0')
        ++*b;
    size_t n = 0, m = 0;
    while (is_digit((*a)[n]))
        n++;
    while (is_digit((*b)[m]))
        m++;
    int r = n != m ? (n < m ? -1 : 1) : memcmp(*a, *b, n);
    *a += n;
    *b += m;
    return r;
}

int str_cmp_natural(const char *a, const char *b)
{
    if (!a || !b)
        return (a != NULL) - (b != NULL);
    const char *x = a, *y = b;
    while (*x && *y) {
        if (is_digit(*x) && is_digit(*y)) {
            int r = cmp_digits(&x, &y);
            if (r)
                return r;
        } else if (*x != *y) {
            return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
        } else {
            x++;
            y++;
        }
    }
    if (*x || *y)
        return *x ? 1 : -1;
    return strcmp(a, b);
}

bool str_to_i64(const char *s, int64_t *ret)
{
    if (!s || !(is_digit(s[0]) || (s[0] == '-' && is_digit(s[1]))))
        return false;
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno || *end)
        return false;
    *ret = v;
    return true;
}

size_t str_utf8_len(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    if (!n)
        return 0;
    if (s[0] < 0x80)
        return 1;
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return len;
}

bool str_utf8_valid(const char *s, size_t n)
{
    struct utf8 u = {0};
    return utf8_feed(&u, s, n) && utf8_complete(&u);
}

char *str_hex(const void *bytes, size_t n, char *out)
{
    const uint8_t *in = bytes;
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = "0123456789abcdef"[in[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[in[i] & 15];
    }
    out[2 * n] = '\0';
    return out;
}

uint64_t str_hash(const char *s, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return h;
}
