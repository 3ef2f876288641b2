// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/dispatch_plan.h"

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
    struct call_head head;
    struct json *split, *collect = NULL;
    int r = call_head_decode(parts->head, parts->head_len, &head, err);
    if (r == 0)
        r = parse(head.split, head.split_len, "split", a, &split, err);
    if (r == 0)
        r = parse(head.collect, head.collect_len, "collect", a, &collect, err);
    return r < 0 ? r : dispatch_rule_read(split, collect, a, ret, err);
}

static int find_rule(const struct request *q, const struct group *g, const struct record_call *parts, struct arena *a,
                     const struct dispatch_rule **ret, struct err *err)
{
    *ret = NULL;
    if (q->ruled) {
        struct dispatch_rule *rule = arena_new(a, struct dispatch_rule);
        *ret = rule;
        return read_rule(parts, a, rule, err);
    }
    const struct member_method *m = member_method_of(g->ranks[0].member, q->role, q->method);
    if (m && m->dispatch == q->dispatch)
        *ret = m->rule;
    if (!*ret && mode_of(q->dispatch)->takes == MODE_RULE)
        return err_set(err, ERR_INVALID,
                       "%s(): dispatch mode %s needs `split` or `collect`, in the call or where the method is "
                       "registered",
                       q->method, mode_dispatch_name(q->dispatch));
    return 0;
}

static const bool *find_wanted(const struct dispatch *d, struct arena *a)
{
    bool *wanted = arena_array(a, d->world, sizeof *wanted);
    for (uint32_t i = 0; i < d->n_keep; i++)
        wanted[d->keep[i]] = true;
    return wanted;
}

static int fill(const struct request *q, const struct group *g, const struct record_call *parts,
                struct dispatch_plan *d, struct err *err)
{
    const struct dispatch_rule *rule;
    const struct mesh *meshes = NULL;
    size_t n_meshes = 0;
    int r = find_rule(q, g, parts, &d->memory, &rule, err);
    if (r == 0)
        r = group_meshes(g, &d->memory, &meshes, &n_meshes, err);
    if (r == 0)
        r = dispatch_make((enum record_dispatch)q->dispatch, rule, meshes, n_meshes, q->world, &d->memory, &d->d, err);
    if (r < 0)
        return err_wrap(err, "%s() of %s", q->method, g->key);
    if (q->pad && d->d.form != MODE_ROWS)
        return err_set(err, ERR_INVALID, "%s(): padding is for batches that are split into pieces, the call is %s",
                       q->method, mode_dispatch_name(q->dispatch));
    d->wanted = find_wanted(&d->d, &d->memory);
    return 0;
}

// The mode needs no plan: all ranks get the same, or each gets one element.
static bool is_plain(const struct dispatch_mode *m)
{
    return mode_lists_ranks(m) && m->pieces != MODE_ROWS;
}

int dispatch_plan_make(const struct request *q, const struct group *g, const struct record_call *parts,
                       struct quota *quota, struct dispatch_plan **ret, struct err *err)
{
    *ret = NULL;
    if (q->single || (is_plain(mode_of(q->dispatch)) && !q->ruled && !q->pad))
        return 0;
    struct dispatch_plan *d = xcalloc(1, sizeof *d);
    d->quota = quota;
    int r = fill(q, g, parts, d, err);
    if (r == 0 && !quota_charge(quota, d->memory.used))
        r = err_set(err, ERR_LIMIT, "%s(): no room for it: too many calls of this client wait already", q->method);
    if (r < 0) {
        dispatch_plan_free(d);
        return r;
    }
    d->charged = d->memory.used;
    *ret = d;
    return 0;
}

void dispatch_plan_free(struct dispatch_plan *d)
{
    if (!d)
        return;
    quota_refund(d->quota, d->charged);
    arena_done(&d->memory);
    free(d);
}

bool dispatch_plan_is_whole(const struct request *q, const struct dispatch_plan *d)
{
    return q->single || ((d ? d->d.form : mode_of(q->dispatch)->pieces) == MODE_WHOLE);
}

bool dispatch_plan_wants(const struct dispatch_plan *d, uint32_t rank)
{
    return !d || d->wanted[rank];
}
