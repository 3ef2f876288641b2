// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/deal.h"

#include "common/wire/mode.h"

#include <stdlib.h>

static int parse(const char *text, size_t len, const char *what, struct arena *a, struct json **ret, struct err *err)
{
    *ret = NULL;
    if (!text)
        return 0;
    int r = json_parse(text, len, NULL, a, ret, err);
    return r < 0 ? err_wrap(err, "\"%s\" in the head of the call", what) : 0;
}

static int read_rule(const struct record_call *parts, struct arena *a, struct dispatch_rule *ret, struct err *err)
{
    struct head head;
    struct json *split, *collect = NULL;
    int r = head_decode(parts->head, parts->head_len, &head, err);
    if (r == 0)
        r = parse(head.split, head.split_len, "split", a, &split, err);
    if (r == 0)
        r = parse(head.collect, head.collect_len, "collect", a, &collect, err);
    return r < 0 ? r : dispatch_rule_read(split, collect, a, ret, err);
}

static int find_rule(const struct call *c, const struct record_call *parts, struct arena *a,
                     const struct dispatch_rule **ret, struct err *err)
{
    *ret = NULL;
    if (c->ruled) {
        struct dispatch_rule *rule = arena_new(a, struct dispatch_rule);
        *ret = rule;
        return read_rule(parts, a, rule, err);
    }
    const struct member_role *role = member_role(c->group->ranks[0].member, c->role);
    const struct member_method *m = role ? member_method(role, c->method) : NULL;
    if (m && m->dispatch == c->dispatch)
        *ret = m->rule;
    if (!*ret && c->dispatch == RECORD_SPLIT)
        return err_set(err, ERR_INVALID,
                       "%s(): dispatch mode SPLIT needs `split` or `collect`, in the call or where the method is "
                       "registered",
                       c->method);
    return 0;
}

static const bool *find_wanted(const struct dispatch *d, struct arena *a)
{
    bool *wanted = arena_array(a, d->world, sizeof *wanted);
    for (uint32_t i = 0; i < d->n_keep; i++)
        wanted[d->keep[i]] = true;
    return wanted;
}

static int fill(const struct call *c, const struct record_call *parts, struct deal *d, struct err *err)
{
    const struct dispatch_rule *rule;
    const struct grid *meshes = NULL;
    size_t n_meshes = 0;
    int r = find_rule(c, parts, &d->memory, &rule, err);
    if (r == 0)
        r = group_meshes(c->group, &d->memory, &meshes, &n_meshes, err);
    if (r == 0)
        r = dispatch_make((enum record_dispatch)c->dispatch, rule, meshes, n_meshes, c->world, &d->memory, &d->d, err);
    if (r < 0)
        return err_wrap(err, "%s() of %s", c->method, c->group->key);
    if (c->pad && d->d.form != DISPATCH_ROWS)
        return err_set(err, ERR_INVALID, "%s(): padding is for batches that are cut into pieces, the call is %s",
                       c->method, mode_dispatch_name(c->dispatch));
    d->wanted = find_wanted(&d->d, &d->memory);
    return 0;
}

int deal_make(struct call *c, const struct record_call *parts, struct err *err)
{
    bool plain =
        c->dispatch == RECORD_ONE_TO_ALL || c->dispatch == RECORD_ALL_TO_ALL || c->dispatch == RECORD_DP_COMPUTE;
    if (plain && !c->ruled && !c->pad)
        return 0;
    struct deal *d = xcalloc(1, sizeof *d);
    int r = fill(c, parts, d, err);
    c->deal = d;
    if (r == 0 && !quota_charge(c->quota, d->memory.used))
        r = err_set(err, ERR_LIMIT, "%s(): no room for it: too many calls of this controller wait already", c->method);
    if (r == 0)
        d->charged = d->memory.used;
    else
        deal_free(c);
    return r;
}

void deal_free(struct call *c)
{
    struct deal *d = TAKE_PTR(c->deal);
    if (!d)
        return;
    quota_refund(c->quota, d->charged);
    arena_done(&d->memory);
    free(d);
}

bool deal_wants(const struct deal *d, uint32_t rank)
{
    return !d || d->wanted[rank];
}
