// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/ranges.h"

static void flush(struct ranges *r)
{
    if (r->first < 0)
        return;
    if (r->text.len)
        buf_putc(&r->text, ',');
    if (r->first == r->last)
        buf_printf(&r->text, "%d", r->first);
    else
        buf_printf(&r->text, "%d-%d", r->first, r->last);
}

void ranges_add(struct ranges *r, int32_t i)
{
    if (r->first >= 0 && i == r->last + 1) {
        r->last = i;
        return;
    }
    flush(r);
    r->first = r->last = i;
}

const char *ranges_take(struct ranges *r, struct arena *a)
{
    flush(r);
    const char *text = arena_strdup(a, buf_str(&r->text));
    buf_done(&r->text);
    return text;
}

// Reads a number up to INT32_MAX. Returns -1 if there is none.
static int64_t read_number(const char **text)
{
    int64_t n = -1;
    for (; **text >= '0' && **text <= '9'; (*text)++) {
        n = (n < 0 ? 0 : n) * 10 + (**text - '0');
        if (n > INT32_MAX)
            return -1;
    }
    return n;
}

bool ranges_next(const char **text, int32_t *ret_first, int32_t *ret_last)
{
    const char *p = *text;
    if (!p || !*p)
        return false;
    *text = NULL;
    int64_t first = read_number(&p), last = first;
    if (first >= 0 && *p == '-') {
        p++;
        last = read_number(&p);
    }
    if (first < 0 || last < first || (*p && (*p != ',' || !p[1])))
        return false;
    *text = *p ? p + 1 : p;
    *ret_first = (int32_t)first;
    *ret_last = (int32_t)last;
    return true;
}
