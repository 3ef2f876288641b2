// SPDX-License-Identifier: Apache-2.0
#include "common/wire/via.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <string.h>

static void put_entry(struct buf *out, const struct via_entry *p)
{
    buf_printf(out, "\"%s/%s/%d/%s%s%s\"", p->ns, p->group, p->rank, p->role ? p->role : "", p->role ? "/" : "",
               p->method);
}

// NAMESPACE/GROUP/RANK/ and more.
static bool is_entry(const char *text)
{
    size_t ns = strcspn(text, "/");
    const char *group = text + ns + (text[ns] == '/');
    size_t n = strcspn(group, "/");
    const char *rank = group + n + (group[n] == '/');
    size_t digits = strspn(rank, "0123456789");
    return ns && n && digits && rank[digits] == '/' && rank[digits + 1];
}

int via_check(const struct json *via, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    bool good = via->type == JSON_LIST;
    JSON_FOREACH(v, via) {
        const char *text = json_str(v, &a);
        good = good && text && is_entry(text);
    }
    return good
               ? 0
               : err_set(err, ERR_INVALID, "must be a list of \"NAMESPACE/GROUP/RANK/METHOD\" or .../RANK/ROLE/METHOD");
}

int via_add(const char *via, size_t len, const struct via_entry *entry, struct buf *out, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *list = NULL;
    int r = len ? json_parse(via, len, NULL, &a, &list, err) : 0;
    size_t n = json_count(list);
    if (r < 0)
        return r;
    if (n >= VIA_MAX)
        return err_set(err, ERR_LIMIT, "calls are nested %d deep already; no further", VIA_MAX);
    buf_putc(out, '[');
    if (n) {
        buf_append(out, via + 1, len - 2); // the text inside its brackets
        buf_putc(out, ',');
    }
    put_entry(out, entry);
    return buf_putc(out, ']');
}

// The part after the rank, if the entry is on this rank.
static char *on_rank(const struct json *v, const char *prefix, bool any, struct arena *a)
{
    char *text = json_str(v, a), *rest = text && str_starts(text, prefix) ? text + strlen(prefix) : NULL;
    char *slash = rest && any ? strchr(rest, '/') : NULL;
    return any ? (slash ? slash + 1 : NULL) : rest;
}

int via_find(const struct json *via, const struct via_entry *rank, struct arena *a,
             bool (*same)(void *ctx, const char *role, const char *method), void *ctx)
{
    bool any = rank->rank < 0;
    const char *prefix = any ? arena_printf(a, "%s/%s/", rank->ns, rank->group)
                             : arena_printf(a, "%s/%s/%d/", rank->ns, rank->group, rank->rank);
    int i = 0;
    JSON_FOREACH(v, via) {
        char *role = on_rank(v, prefix, any, a), *slash = role ? strchr(role, '/') : NULL;
        if (slash)
            *slash = '\0';
        if (role && same(ctx, slash ? role : NULL, slash ? slash + 1 : role))
            return i;
        i++;
    }
    return -1;
}

void via_print(const struct json *via, int from, struct arena *a, struct buf *out)
{
    int i = 0;
    JSON_FOREACH(v, via) {
        const char *text = i < from ? NULL : json_str(v, a);
        if (text)
            buf_printf(out, "%s%s", i > from ? ", " : "", text);
        i++;
    }
}
