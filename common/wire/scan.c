// SPDX-License-Identifier: Apache-2.0
#include "common/wire/scan.h"

#include <stdint.h>
#include <string.h>

enum { FIRST, LATER, OVER };

static void skip_space(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r'))
        s->p++;
}

// Eight bytes at a time for as long as none is a quote or a backslash. A borrow may report another byte as one, never
// the other way round.
static const char *skip_plain(const char *p, const char *end)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    while (end - p >= 8) {
        uint64_t v, quote, slash;
        memcpy(&v, p, 8);
        quote = v ^ ones * '"';
        slash = v ^ ones * '\\';
        if ((((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & tops)
            break;
        p += 8;
    }
    return p;
}

static bool skip_string(struct scan *s) // stands on the opening quote
{
    for (s->p = skip_plain(s->p + 1, s->end); s->p < s->end; s->p++) {
        if (*s->p == '"') {
            s->p++;
            return true;
        }
        if (*s->p == '\\' && ++s->p == s->end)
            return false;
    }
    return false;
}

static bool skip_nested(struct scan *s) // stands on the opening bracket
{
    char open[SCAN_DEPTH_MAX];
    int depth = 0;
    while (s->p < s->end) {
        char c = *s->p;
        if (c == '"') {
            if (!skip_string(s))
                return false;
            continue;
        }
        if (c == '[' || c == '{') {
            if (depth == SCAN_DEPTH_MAX)
                return false;
            open[depth++] = c == '[' ? ']' : '}';
        } else if (c == ']' || c == '}') {
            if (open[--depth] != c)
                return false;
        }
        s->p++;
        if (depth == 0)
            return true;
    }
    return false;
}

// What no number, true, false or null goes on with.
static const bool ends_word[256] = {
    ['\0'] = true, [','] = true,  [']'] = true, ['}'] = true, [' '] = true, ['\n'] = true,
    ['\t'] = true, ['\r'] = true, [':'] = true, ['"'] = true, ['['] = true, ['{'] = true};

static bool skip_value(struct scan *s)
{
    if (s->p == s->end)
        return false;
    if (*s->p == '"')
        return skip_string(s);
    if (*s->p == '[' || *s->p == '{')
        return skip_nested(s);
    const char *from = s->p;
    while (s->p < s->end && !ends_word[(unsigned char)*s->p])
        s->p++;
    return s->p > from;
}

int scan_begin(struct scan *s, const char *json, size_t len)
{
    *s = (struct scan){.p = json, .end = json + len};
    skip_space(s);
    if (s->p == s->end || (*s->p != '[' && *s->p != '{'))
        return 0;
    s->close = *s->p++ == '[' ? ']' : '}';
    return 1;
}

static int ended(struct scan *s)
{
    s->p++;
    skip_space(s);
    s->state = OVER;
    return s->p == s->end ? 0 : -1;
}

static int scan_key(struct scan *s, struct scan_item *ret)
{
    if (s->p == s->end || *s->p != '"')
        return -1;
    ret->key = s->p + 1;
    if (!skip_string(s))
        return -1;
    ret->key_len = (size_t)(s->p - 1 - ret->key);
    skip_space(s);
    if (s->p == s->end || *s->p++ != ':')
        return -1;
    skip_space(s);
    return 0;
}

int scan_next(struct scan *s, struct scan_item *ret)
{
    *ret = (struct scan_item){0};
    skip_space(s);
    if (s->state == OVER || s->p == s->end)
        return -1;
    if (*s->p == s->close)
        return ended(s);
    if (s->state == LATER) {
        if (*s->p++ != ',')
            return -1;
        skip_space(s);
    }
    s->state = LATER;
    if (s->close == '}' && scan_key(s, ret) < 0)
        return -1;
    ret->text = s->p;
    if (!skip_value(s))
        return -1;
    ret->len = (size_t)(s->p - ret->text);
    return 1;
}

bool scan_one(const char *json, size_t len)
{
    struct scan s = {.p = json, .end = json + len};
    skip_space(&s);
    if (!skip_value(&s))
        return false;
    skip_space(&s);
    return s.p == s.end;
}
