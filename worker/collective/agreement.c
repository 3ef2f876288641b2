// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/agreement.h"

#include "common/base/str.h"

enum { NAMED = 4, KINDS = 4 }; // members of each kind, and kinds, before the rest is counted

static bool is_first(const char *const *whats, int i)
{
    for (int k = 0; k < i; k++)
        if (str_eq(whats[k], whats[i]))
            return false;
    return true;
}

static void put_kind(const char *const *whats, const char *const *names, int n, int first, struct buf *out)
{
    int named = 0;
    for (int i = first; i < n; i++) {
        if (!str_eq(whats[i], whats[first]))
            continue;
        if (named++ < NAMED)
            buf_printf(out, "%s%s", named > 1 ? ", " : "", names[i]);
    }
    if (named > NAMED)
        buf_printf(out, " and %d more", named - NAMED);
    buf_printf(out, ": %s", whats[first]);
}

bool agreement_holds(const char *const *whats, const char *const *names, int n, struct buf *out)
{
    int kinds = 0;
    for (int i = 0; i < n; i++)
        kinds += is_first(whats, i);
    if (kinds < 2)
        return true;
    for (int i = 0, told = 0; i < n && told < KINDS; i++) {
        if (!is_first(whats, i))
            continue;
        if (told++)
            buf_puts(out, "; ");
        put_kind(whats, names, n, i, out);
    }
    if (kinds > KINDS)
        buf_printf(out, "; %d more kinds", kinds - KINDS);
    return false;
}
