// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/placementgroup_controller.h"

#include "common/base/mem.h"
#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/reason.h"

#include <stdlib.h>

struct placementgroup_controller {
    struct group_controller *groups;
    struct recorder *recorder;
    const struct agents *agents; // NULL = there are none
    struct reconciler reconciler;
};

static void on_placementgroup(void *ctx, const struct object *old, const struct object *now)
{
    struct placementgroup_controller *c = ctx;
    if (!now)
        recorder_forget(c->recorder, old);
    reconciler_wake_object(&c->reconciler, now ? now : old);
}

// Looks only at pods that end. They are few, and no decision asks about the others.
static const bool *lost_gpus(const struct placementgroup_controller *c, const struct gang_view *gang, struct arena *a)
{
    bool *lost = arena_array(a, gang->n_pods, sizeof *lost);
    for (size_t i = 0; i < gang->n_pods && c->agents; i++) {
        const struct pod *p = gang->pods[i];
        lost[i] = (p->obj.meta.deleted_ms || pod_terminal(p)) && agents_gpu_lost(c->agents, p->obj.meta.uid);
    }
    return lost;
}

static void decide(void *ctx, const struct object *o, const struct gang_view *gang, struct arena *a, struct plan *ret)
{
    const struct placementgroup_controller *c = ctx;
    const struct meta *m = &o->meta;
    struct placementgroup_view v = {.plg = placementgroup_of(o),
                                    .gang = *gang,
                                    .gpu_lost = lost_gpus(c, gang, a),
                                    .used = group_controller_has_user(c->groups, m->ns, m->name, NULL)};
    v.gang.service = reconciler_service(&c->reconciler, m->ns, bundlepod_gang(v.plg, a));
    placementgroup_reconcile(&v, a, ret);
}

static void note(void *ctx, const struct object *o, struct observations *n, const struct plan *p, int64_t now_ms)
{
    const struct placementgroup_status *s = &placementgroup_of(o)->status;
    const struct condition *ready = condition_find(s->conditions, s->n_conditions, COND_READY);
    (void)ctx;
    if (ready && ready->status == CONDITION_TRUE && observations_calm(n, p, now_ms))
        observations_ready(n, ready->changed_ms, now_ms);
}

struct placementgroup_controller *placementgroup_controller_new(struct loop *loop, struct group_controller *groups,
                                                                const struct group_controller_options *options)
{
    struct placementgroup_controller *c = xcalloc(1, sizeof *c);
    c->groups = groups;
    c->recorder = options->recorder;
    c->agents = options->agents;
    reconciler_init(&c->reconciler, loop,
                    &(struct reconciler_options){.kind = KIND_PLACEMENTGROUP,
                                                 .shared = group_controller_shared(groups),
                                                 .metrics = options->metrics,
                                                 .seed = options->seed,
                                                 .plan = decide,
                                                 .note = note,
                                                 .ctx = c});
    store_subscribe(options->stores[KIND_PLACEMENTGROUP], on_placementgroup, c);
    return c;
}

struct reconciler *placementgroup_controller_reconciler(struct placementgroup_controller *c)
{
    return &c->reconciler;
}

void placementgroup_controller_free(struct placementgroup_controller *c)
{
    if (!c)
        return;
    reconciler_done(&c->reconciler);
    free(c);
}
