// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/split.h"

#include "common/wire/scan.h"
#include "operator/proxy/mode.h"

#include <stdio.h>
#include <string.h>

enum { COLUMNS_MAX = 64 };

static int no_json(const struct call *c, const struct scan *s, const struct record_call *parts, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s(): the arguments are not valid JSON at byte %zu", c->method,
                   (size_t)(s->p - parts->args));
}

static int wrong_count(const struct call *c, const char *what, uint32_t found, bool more, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "%s(): %s has %s%u elements, %s has %u ranks; a list of arguments one a rank must have one element "
                   "for each rank",
                   c->method, what, more ? "more than " : "", found, c->group->key, c->n);
}

static int no_room(const struct call *c, struct err *err)
{
    return err_set(err, ERR_LIMIT, "%s(): no room for its arguments: too many calls of this controller wait already",
                   c->method);
}

static int split_list(struct call *c, struct scan *s, const struct call_body *body, const struct record_call *parts,
                      struct blob **ret, struct err *err)
{
    struct scan_item item;
    uint32_t n = 0;
    int got;
    for (; (got = scan_next(s, &item)) > 0 && n < c->n; n++) {
        c->slots[n].offset = (size_t)(item.text - body->data);
        c->slots[n].len = item.len;
    }
    if (got < 0)
        return no_json(c, s, parts, err);
    if (got > 0 || n < c->n)
        return wrong_count(c, "the list of arguments", n, got > 0, err);
    *ret = call_keep(c, body);
    if (!*ret)
        return no_room(c, err);
    for (uint32_t i = 0; body->blob && i < c->n; i++)
        c->slots[i].offset += (size_t)(body->data - body->blob->data);
    return 0;
}

static bool put(struct blob *b, const char *text, size_t len)
{
    if (!blob_reserve(b, len))
        return false;
    memcpy(b->data + b->len, text, len);
    b->len += len;
    return true;
}

static bool put_member(struct blob *b, bool first, const struct scan_item *key, const struct scan_item *value)
{
    return put(b, first ? "{\"" : ",\"", 2) && put(b, key->key, key->key_len) && put(b, "\":", 2) &&
           put(b, value->text, value->len);
}

struct column {
    struct scan_item member;
    struct scan at;
};

static int read_columns(const struct call *c, struct scan *s, const struct record_call *parts, struct column *columns,
                        uint32_t *ret_n, struct err *err)
{
    struct scan_item item;
    uint32_t n = 0;
    int got;
    while ((got = scan_next(s, &item)) > 0) {
        if (n == COLUMNS_MAX)
            return err_set(err, ERR_INVALID, "%s() has more than %d arguments", c->method, COLUMNS_MAX);
        columns[n].member = item;
        if (!scan_begin(&columns[n].at, item.text, item.len) || columns[n].at.close != ']')
            return err_set(err, ERR_INVALID,
                           "%s(): argument '%.*s' must be a list of one element a rank, because the call is %s",
                           c->method, (int)MIN(item.key_len, (size_t)64), item.key, mode_dispatch_name(c->dispatch));
        n++;
    }
    *ret_n = n;
    return got < 0 ? no_json(c, s, parts, err) : 0;
}

// The element of each column for rank i, as one object.
static int put_row(struct call *c, uint32_t i, struct column *columns, uint32_t n, const struct record_call *parts,
                   struct blob *b, struct err *err)
{
    c->slots[i].offset = b->len;
    for (uint32_t k = 0; k < n; k++) {
        char what[96];
        struct scan_item value;
        const struct scan_item *m = &columns[k].member;
        int got = scan_next(&columns[k].at, &value);
        snprintf(what, sizeof what, "argument '%.*s'", (int)MIN(m->key_len, (size_t)64), m->key);
        if (got < 0)
            return no_json(c, &columns[k].at, parts, err);
        if (got == 0)
            return wrong_count(c, what, i, false, err);
        if (i == c->n - 1 && scan_next(&(struct scan){columns[k].at.p, columns[k].at.end, ']', columns[k].at.state},
                                       &(struct scan_item){0}) != 0)
            return wrong_count(c, what, c->n, true, err);
        if (!put_member(b, k == 0, m, &value))
            return no_room(c, err);
    }
    if (!put(b, n ? "}" : "{}", n ? 1 : 2))
        return no_room(c, err);
    c->slots[i].len = b->len - c->slots[i].offset;
    return 0;
}

static int split_columns(struct call *c, struct scan *s, const struct record_call *parts, struct blob **ret,
                         struct err *err)
{
    struct column columns[COLUMNS_MAX];
    uint32_t n = 0;
    int r = read_columns(c, s, parts, columns, &n, err);
    if (r < 0)
        return r;
    struct blob *b = blob_new(0, c->quota);
    if (!b)
        return no_room(c, err);
    for (uint32_t i = 0; i < c->n && r == 0; i++)
        r = put_row(c, i, columns, n, parts, b, err);
    if (r < 0) {
        blob_unref(b);
        return r;
    }
    *ret = b;
    return 0;
}

int split_args(struct call *c, const struct call_body *body, const struct record_call *parts, struct blob **ret,
               struct err *err)
{
    struct scan s;
    if (!scan_begin(&s, parts->args, parts->args_len))
        return err_set(err, ERR_INVALID,
                       "%s(): a call that is %s needs a list of arguments, one element for each of the %u ranks of %s",
                       c->method, mode_dispatch_name(c->dispatch), c->n, c->group->key);
    return s.close == ']' ? split_list(c, &s, body, parts, ret, err) : split_columns(c, &s, parts, ret, err);
}
