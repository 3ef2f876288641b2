// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/group_changes.h"

#include "operator/gateway/admission.h"
#include "operator/proxy/group_change.h"
#include "operator/proxy/kill.h"

static void on_done(void *ctx, const char *json, size_t len, const struct err *err)
{
    struct group_change *e = ctx;
    if (err->code)
        group_change_fail(e, err);
    else
        group_change_answer(e, json, len);
}

static void run(struct gateway *g, struct group_change *e)
{
    const struct provisioner *p = g->config.provisioner;
    const struct peer_owner *o = e->session->peer.owner;
    if (!p) {
        struct err err = ERR_INIT;
        err_set(&err, ERR_INVALID, "groups are not created or deleted here: there is no cluster");
        group_change_fail(e, &err);
        return;
    }
    const struct provision what = {
        .ns = o->ns,
        .who = {o->admission->user ? o->admission->user : "", o->admission->subject},
        .lifetime = o->lifetime,
        .args = e->args,
    };
    const provisioner_fn carry_out[] = {
        [GROUP_CHANGE_CREATE] = p->create,   [GROUP_CHANGE_RENEW] = p->renew,     [GROUP_CHANGE_DELETE] = p->remove,
        [GROUP_CHANGE_RESTART] = p->restart, [GROUP_CHANGE_BUNDLES] = p->bundles, [GROUP_CHANGE_CAPACITY] = p->capacity,
    };
    carry_out[e->kind](p->ctx, &what, on_done, e);
}

static void order_kill(struct gateway *g, struct kill *k)
{
    const struct gateway_config *config = &g->config;
    struct err err = ERR_INIT;
    int r = config->kill ? config->kill(config->ctx, k->group->uid, k->attempt, k->rank, &err)
                         : err_set(&err, ERR_UNAVAILABLE, "agents cannot connect here");
    if (r == 0)
        return;
    err_wrap(&err, "rank %u of %s cannot be killed", k->rank, k->group->key);
    kill_refuse(k, &err);
}

void group_changes_run(struct gateway *g)
{
    for (struct kill *k; (k = kill_next(&g->router));)
        order_kill(g, k);
    for (struct group_change *e; (e = router_group_change(&g->router));)
        run(g, e);
}

void group_changes_ended(struct gateway *g, const struct peer_owner *o, bool done)
{
    const struct provisioner *p = g->config.provisioner;
    if (p && o->lifetime)
        p->ended(p->ctx, o->lifetime, !done);
}
