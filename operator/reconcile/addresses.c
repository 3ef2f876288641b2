// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/addresses.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/endpointslice.h"
#include "operator/reconcile/gang_manifest.h"
#include "operator/reconcile/wait.h"

#include <inttypes.h>
#include <string.h>

enum {
    SLICE_PODS = 100,   // as many as Kubernetes' own controller puts into one slice: the cost of a change grows with it
    PART_MAX_MS = 1000, // a client may be looking for rank 0
};

// The pods from `first` on that have an address of this family. Returns false if some have no address at all.
static bool collect(struct group_decision *d, int32_t first, bool ipv6, struct endpoint *endpoints, size_t *ret_n)
{
    const struct group_pods *c = &d->pods;
    bool whole = true;
    *ret_n = 0;
    for (int32_t i = first; i < MIN(first + SLICE_PODS, c->replicas); i++) {
        const struct pod *p = d->pods_leave ? NULL : c->current[i];
        bool has_address = p && p->ip && !pod_terminal(p);
        whole = whole && has_address;
        if (!has_address || (strchr(p->ip, ':') != NULL) != ipv6)
            continue;
        endpoints[(*ret_n)++] = (struct endpoint){
            .ip = p->ip,
            .hostname = arena_printf(d->a, "%s-%" PRId32, d->wg->obj.meta.name, i),
            .node = p->node,
            .pod = p->obj.meta.name,
            .uid = p->obj.meta.uid,
        };
    }
    return whole;
}

static const struct endpointslice *find(const struct group_decision *d, const char *name)
{
    for (size_t i = 0; i < d->v->n_slices; i++)
        if (str_eq(d->v->slices[i]->obj.meta.name, name))
            return d->v->slices[i];
    return NULL;
}

// Only a part of the slice is out of date. Returns true while the rest may still come, but not for longer than a status
// waits among many.
static bool rest_may_come(struct group_decision *d, bool first)
{
    int64_t limit = MIN(conditions_settle_ms(first, false, d->v->gang.waiting_statuses), PART_MAX_MS);
    int64_t now = d->v->gang.now_ms;
    int64_t left = wait_left(d->v->gang.memory, d->plan, WAIT_ADDRESSES, 1, now, limit, now);
    if (left > 0)
        plan_requeue(d->plan, left);
    else
        d->plan->waits[WAIT_ADDRESSES] = (struct wait){0}; // the wait of the next change starts again
    return left > 0;
}

static void write_slice(struct group_decision *d, const char *name, bool ipv6, const struct endpoint *endpoints,
                        size_t n, const struct endpointslice *old)
{
    const char *group = d->wg->obj.meta.name;
    struct label labels[] = {
        {LABEL_GROUP, group},
        {LABEL_SLICE_MANAGED_BY, SLICE_MANAGED_BY},
        {LABEL_SLICE_SERVICE, group},
    };
    struct endpointslice_spec s = {
        .ns = d->wg->obj.meta.ns,
        .name = name,
        .labels = {labels, ARRAY_LEN(labels)},
        .owner = gang_manifest_owner(&d->wg->obj),
        .ipv6 = ipv6,
        .endpoints = endpoints,
        .n_endpoints = n,
        .port = d->wg->spec.rendezvous_port,
    };
    struct action *x = plan_add(d->plan, old ? ACTION_PATCH_SLICE : ACTION_CREATE_SLICE, STAGE_SECOND);
    x->name = name;
    x->body = old ? endpointslice_patch(&s, old->obj.meta.resource_version, d->a) : endpointslice_encode(&s, d->a);
}

static void publish(struct group_decision *d, int32_t number, bool ipv6, struct endpoint *endpoints)
{
    const char *name = arena_printf(d->a, "%s-%s-%" PRId32, d->wg->obj.meta.name, ipv6 ? "ipv6" : "ipv4", number);
    const struct endpointslice *old = find(d, name);
    size_t n;
    bool whole = collect(d, number * SLICE_PODS, ipv6, endpoints, &n);
    if (old ? old->hash == endpointslice_hash(endpoints, n, d->wg->spec.rendezvous_port) : n == 0)
        return;
    // The whole slice is out of date: a name would lead to an address where nobody listens any more.
    if (whole || n == 0 || !rest_may_come(d, !old || !old->n_endpoints))
        write_slice(d, name, ipv6, arena_memdup(d->a, endpoints, n * sizeof *endpoints), n, old);
}

void addresses_publish(struct group_decision *d)
{
    const struct service *s = d->v->gang.service;
    if (d->pods.bundles || !s || s->selects || !str_eq(s->obj.meta.owner.uid, d->wg->obj.meta.uid))
        return;
    int32_t slices = (d->pods.replicas + SLICE_PODS - 1) / SLICE_PODS;
    struct endpoint endpoints[SLICE_PODS];
    for (int32_t i = 0; i < MAX(slices, (int32_t)d->v->n_slices);
         i++) // including the slices of replicas that no longer exist
        for (int ipv6 = 0; ipv6 < 2; ipv6++)
            publish(d, i, ipv6, endpoints);
}
