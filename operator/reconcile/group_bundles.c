// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/group_bundles.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/bundles.h"
#include "operator/reconcile/gang_pods.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/ranges.h"
#include "operator/reconcile/reason.h"
#include "operator/reconcile/rendezvous_port.h"

enum { GRACE_DEFAULT_S = 30 };

struct bundle_pod { // the pod of one bundle
    const struct pod *pod;
    size_t at;
    int32_t gpu;
    bool live, named; // named: spec.placement.groups has named the bundle already
};

struct bundle_owner { // a PlacementGroup
    const struct placementgroup *plg;
    struct bundles bundles;
    struct bundle_pod *pods; // by bundle
    bool claims;             // its template has resourceClaims
};

struct taking {
    const struct group_view *v;
    const struct workergroup *wg;
    struct arena *a;
    struct group_bundles *ret;
    bool bound;
    struct bundle_owner *owners;
    size_t n_owners;
    int64_t named; // number of bundles named so far
};

static bool refuse(struct taking *t, const char *message)
{
    if (!t->ret->refusal.reason)
        t->ret->refusal = (struct refusal){REASON_INVALID_BUNDLES, message};
    return false;
}

static void wait_for(struct taking *t, const char *reason, const char *message)
{
    if (t->ret->wait_reason)
        return;
    t->ret->wait_reason = reason;
    t->ret->wait_message = message;
}

// The pod of each bundle.

static const struct placementgroup *owner_among(const struct placementgroup *const *groups, size_t n,
                                                const struct pod *p)
{
    for (size_t i = 0; groups && i < n; i++)
        if (groups[i] && str_eq(groups[i]->obj.meta.uid, p->obj.meta.owner.uid))
            return groups[i];
    return NULL;
}

int32_t group_bundles_node_lost_s(const struct group_view *v, const struct pod *p)
{
    const struct placementgroup *plg = owner_among(v->placementgroups, v->wg->spec.n_placement_groups, p);
    if (!plg && v->as_running)
        plg = owner_among(v->placementgroups_running, v->as_running->spec.n_placement_groups, p);
    return plg ? plg->spec.gang.node_lost_s : v->wg->spec.gang.node_lost_s;
}

static bool is_live(const struct taking *t, const struct pod *p)
{
    const struct gang_view *v = &t->v->gang;
    return p->node && !p->obj.meta.deleted_ms && !pod_terminal(p) &&
           !pod_node_gone(v->cluster, p, group_bundles_node_lost_s(t->v, p), v->now_ms, NULL);
}

static bool is_better(const struct bundle_pod *h, const struct pod *p, bool live)
{
    if (!h->pod || h->live != live)
        return !h->pod || live;
    return pod_label_number(p, LABEL_INCARNATION) > pod_label_number(h->pod, LABEL_INCARNATION);
}

static int32_t bundle_gpus(const struct bundles *b, int32_t i)
{
    return (int32_t)MIN(amounts_get(&bundle_shape(b, i)->resources, RESOURCE_GPU_NAME) / 1000, INT64_C(1024));
}

static void take_pod(struct taking *t, struct bundle_owner *s, size_t at)
{
    const struct pod *p = t->v->gang.pods[at];
    bool same, live = is_live(t, p);
    int32_t *items, gpu = 0;
    size_t n;
    if (!bundles_of_pod(&s->bundles, p, t->a, &items, &n, &same))
        return;
    for (size_t i = 0; i < n; i++) {
        struct bundle_pod *h = &s->pods[items[i]];
        if (is_better(h, p, live)) {
            h->pod = p;
            h->at = at;
            h->gpu = gpu;
            h->live = live;
        }
        gpu += bundle_gpus(&s->bundles, items[i]);
    }
}

// If there is no template, or it cannot be read, returns the defaults of Kubernetes.
static struct template_facts template_of(const struct placementgroup *plg)
{
    struct arena scratch = ARENA_INIT;
    struct err err = ERR_INIT;
    struct template_facts facts, none = {.grace_s = GRACE_DEFAULT_S};
    bool ok = plg && plg->spec.template_json &&
              template_inspect(plg->spec.template_json, reserved_env, &scratch, &facts, &err) == 0;
    struct template_facts ret = ok ? (struct template_facts){.grace_s = facts.grace_s, .claims = facts.claims} : none;
    arena_done(&scratch);
    return ret;
}

// NULL: the bundles cannot be read. The conditions of the PlacementGroup say so.
static struct bundle_owner *owner_of(struct taking *t, const struct placementgroup *plg)
{
    struct err err = ERR_INIT;
    for (size_t i = 0; i < t->n_owners; i++)
        if (t->owners[i].plg == plg)
            return &t->owners[i];
    struct bundle_owner *s = &t->owners[t->n_owners];
    *s = (struct bundle_owner){.plg = plg};
    if (bundles_expand(&plg->spec, t->a, &s->bundles, &err) < 0)
        return NULL;
    s->claims = template_of(plg).claims;
    s->pods = arena_array(t->a, (size_t)s->bundles.n, sizeof *s->pods);
    for (size_t i = 0; i < t->v->gang.n_pods; i++)
        if (str_eq(t->v->gang.pods[i]->obj.meta.owner.uid, plg->obj.meta.uid))
            take_pod(t, s, i);
    t->n_owners++;
    return s;
}

// The replicas, one bundle after the other.

// worker.gpus counts nvidia.com/gpu, and the bundle has too few.
static void refuse_gpus(struct taking *t, const struct bundle_owner *s, int32_t i, int32_t gpus)
{
    if (t->ret->refusal.reason)
        return;
    const struct amount *other = bundle_other_device(bundle_shape(&s->bundles, i));
    const char *has = arena_printf(t->a, "bundle %d of PlacementGroup %s has", i, s->plg->obj.meta.name);
    const char *what = other ? arena_printf(t->a, "%lld %s", (long long)(other->milli / 1000), other->name)
                             : "only the resourceClaims of its template";
    int32_t wanted = t->wg->spec.worker.gpus;
    const char *why;
    if (gpus)
        why =
            arena_printf(t->a,
                         "spec.worker.gpus is %d, but %s %d nvidia.com/gpu: lower spec.worker.gpus, or ask for more in "
                         "spec.bundles",
                         wanted, has, gpus);
    else if (!other && !s->claims)
        why =
            arena_printf(t->a,
                         "spec.worker.gpus is %d, but %s no GPU: leave spec.worker.gpus out, or ask for nvidia.com/gpu "
                         "in spec.bundles",
                         wanted, has);
    else
        why =
            arena_printf(t->a,
                         "spec.worker.gpus is %d and counts nvidia.com/gpu, but %s %s: leave spec.worker.gpus out; the "
                         "workers then see the GPUs of their pod",
                         wanted, has, what);
    refuse(t, why);
}

static bool take_bundle(struct taking *t, size_t group, struct bundle_owner *s, int32_t i)
{
    const struct worker_spec *worker = &t->wg->spec.worker;
    struct bundle_pod *h = &s->pods[i];
    const char *name = s->plg->obj.meta.name;
    if (h->named)
        return refuse(t,
                      arena_printf(t->a, "spec.placement.groups names bundle %d of PlacementGroup %s twice", i, name));
    h->named = true;
    int32_t gpus = bundle_gpus(&s->bundles, i);
    if (t->named++ >= t->wg->spec.replicas)
        return true; // the group needs no more bundles
    if (worker->gpus > gpus)
        refuse_gpus(t, s, i, gpus); // processes of an earlier spec keep the bundle
    struct replica_bundle *b = &t->ret->replicas[t->named - 1];
    *b = (struct replica_bundle){.placementgroup = group, .bundle = i, .gpus = gpus, .next = -1};
    t->ret->gpus += gpus;
    if (!h->pod || (!h->live && !t->bound)) {
        wait_for(t, REASON_PLACEMENT_NOT_READY,
                 arena_printf(t->a, "bundle %d of PlacementGroup %s has no running pod at present", i, name));
        return true;
    }
    b->pod = h->pod;
    b->at = h->at;
    b->gpu = h->gpu;
    // If the bundles in the pod have nvidia.com/gpu, the owner of each of the pod's GPUs is known.
    b->uncounted = !gpus && !resources_get(&h->pod->requests, RESOURCE_GPU) &&
                   (s->claims || bundle_other_device(bundle_shape(&s->bundles, i)));
    return true;
}

static bool take_ranges(struct taking *t, size_t group, struct bundle_owner *s, const char *text)
{
    const char *rest = text;
    int32_t first, last;
    while (ranges_next(&rest, &first, &last)) {
        if (last >= s->bundles.n)
            return refuse(
                t,
                arena_printf(
                    t->a, "spec.placement.groups asks for bundles %s of PlacementGroup %s, which has %d bundles (0-%d)",
                    text, s->plg->obj.meta.name, s->bundles.n, s->bundles.n - 1));
        for (int32_t i = first; i <= last; i++)
            if (!take_bundle(t, group, s, i))
                return false;
    }
    return rest || refuse(t, arena_printf(t->a, "spec.placement.groups: %s is not a list of bundles like 0-3,6", text));
}

static void look_ready(struct taking *t, const struct placementgroup *plg)
{
    const struct condition *c = plg->status.conditions;
    size_t n = plg->status.n_conditions;
    const struct condition *scheduled = condition_find(c, n, COND_SCHEDULED), *ready = condition_find(c, n, COND_READY);
    const char *name = plg->obj.meta.name;
    if (plg->obj.meta.deleted_ms)
        wait_for(t, REASON_PLACEMENT_NOT_FOUND, arena_printf(t->a, "PlacementGroup %s is being deleted", name));
    else if (!ready || !scheduled)
        // A change of the text alone may be written much later, so this text has to stay true.
        wait_for(
            t, REASON_PLACEMENT_NOT_READY,
            arena_printf(t->a, "PlacementGroup %s is not ready: 'kubectl get plg %s -o wide' says why", name, name));
    else if (scheduled->status != CONDITION_TRUE)
        wait_for(t, REASON_PLACEMENT_NOT_READY,
                 arena_printf(t->a, "PlacementGroup %s is not ready: %s: %s", name, ready->reason, ready->message));
}

static bool take_placementgroup(struct taking *t, size_t i)
{
    const struct placementgroup_ref *ref = &t->wg->spec.placement_groups[i];
    const struct placementgroup *plg = t->v->placementgroups[i];
    if (!plg) {
        wait_for(t, REASON_PLACEMENT_NOT_FOUND,
                 arena_printf(t->a, "PlacementGroup %s does not exist in namespace %s: create it, or name another one",
                              ref->name, t->wg->obj.meta.ns));
        return false;
    }
    look_ready(t, plg);
    struct bundle_owner *s = owner_of(t, plg);
    if (!s) {
        wait_for(t, REASON_PLACEMENT_NOT_READY,
                 arena_printf(t->a, "PlacementGroup %s is not ready: its bundles cannot be read", ref->name));
        return false;
    }
    if (ref->bundles)
        return take_ranges(t, i, s, ref->bundles);
    for (int32_t k = 0; k < s->bundles.n; k++)
        if (!take_bundle(t, i, s, k))
            return false;
    return true;
}

// Replicas in one pod.

static void join_pods(struct taking *t)
{
    struct group_bundles *p = t->ret;
    int32_t *last = arena_array(t->a, t->v->gang.n_pods, sizeof *last); // index + 1 of the last replica, by pod
    for (int32_t i = 0; i < t->wg->spec.replicas; i++) {
        struct replica_bundle *b = &p->replicas[i];
        if (!b->pod)
            continue;
        int32_t before = last[b->at] - 1;
        b->first = i;
        b->node = p->nodes;
        if (before >= 0) {
            b->first = p->replicas[before].first;
            b->before = p->replicas[before].before + 1;
            b->node = p->replicas[before].node;
            p->replicas[before].next = i;
        } else {
            p->nodes++;
        }
        p->replicas[b->first].pod_replicas = b->before + 1;
        last[b->at] = i + 1;
    }
    for (int32_t i = 0; i < t->wg->spec.replicas; i++)
        p->replicas[i].pod_replicas = p->replicas[p->replicas[i].first].pod_replicas;
}

// Finds processes of the group in pods where it has no bundle (any more). In pods of its own PlacementGroups, the plan
// stops them. The others are in pods of PlacementGroups from which the group was moved away.
static void find_stale(struct taking *t)
{
    const struct group_view *v = t->v;
    struct group_bundles *p = t->ret;
    size_t here = 0;
    bool *current = arena_array(t->a, v->gang.n_pods, sizeof *current);
    p->stale = arena_array(t->a, v->gang.n_pods, sizeof *p->stale);
    for (int32_t i = 0; i < t->wg->spec.replicas; i++)
        if (p->replicas[i].pod)
            current[p->replicas[i].at] = true;
    for (size_t i = 0; v->agents && i < v->gang.n_pods; i++) {
        here += v->agents[i].state != AGENT_IDLE;
        if (!current[i] && v->agents[i].connected && v->agents[i].state != AGENT_IDLE)
            p->stale[p->n_stale++] = v->gang.pods[i];
    }
    if (p->n_stale)
        wait_for(t, REASON_TERMINATING,
                 arena_printf(t->a, "waits until processes of an earlier attempt have ended in pod %s",
                              p->stale[0]->obj.meta.name));
    else if (v->running > here)
        wait_for(t, REASON_TERMINATING,
                 arena_printf(t->a,
                              "waits until processes of an earlier attempt have ended in %zu pod%s of other "
                              "PlacementGroups",
                              v->running - here, v->running - here == 1 ? "" : "s"));
}

// The rendezvous.

static void take_port(struct taking *t)
{
    const struct group_view *v = t->v;
    const struct other_user *other;
    int32_t taken = v->agents ? v->agents[t->ret->replicas[0].at].taken_port : 0;
    t->ret->master_port = rendezvous_port(v, t->ret->master_host, taken, t->a, &other);
    if (!other)
        return;
    t->ret->waits_for_port = true;
    wait_for(t, REASON_PORT_CONFLICT,
             arena_printf(t->a,
                          "spec.rendezvousPort %d is used by WorkerGroup %s, whose rank 0 is in the same pod: choose "
                          "another port, or leave it out",
                          v->wg->spec.rendezvous_port, other->name));
}

// A PlacementGroup gets its Service when the first group comes. If a process looked up the name of rank 0 before that,
// caches would answer for a while that the name does not exist.
static void look_named(struct taking *t, size_t group, const char *gang)
{
    const struct service *s = t->v->placementgroup_services[group];
    const struct meta *m = &t->v->placementgroups[group]->obj.meta;
    if (!t->bound && !(s && str_eq(s->obj.meta.owner.uid, m->uid)))
        wait_for(t, REASON_PENDING,
                 arena_printf(t->a, "PlacementGroup %s has no Service %s yet, which its pods need for their names",
                              m->name, gang));
}

static void take_master(struct taking *t)
{
    const struct replica_bundle *b = &t->ret->replicas[0];
    if (!b->pod)
        return;
    const char *gang = bundlepod_gang(t->v->placementgroups[b->placementgroup], t->a);
    look_named(t, b->placementgroup, gang);
    t->ret->master_host =
        arena_printf(t->a, "%s-%d.%s.%s.svc", gang, pod_label_number(b->pod, LABEL_INDEX), gang, t->wg->obj.meta.ns);
    take_port(t);
}

void group_bundles_take(const struct group_view *v, bool bound, struct arena *a, struct group_bundles *ret)
{
    const struct workergroup_spec *s = &v->wg->spec;
    struct taking t = {.v = v, .wg = v->wg, .a = a, .ret = ret, .bound = bound};
    *ret = (struct group_bundles){.replicas = arena_array(a, (size_t)s->replicas, sizeof *ret->replicas)};
    for (int32_t i = 0; i < s->replicas; i++)
        ret->replicas[i] = (struct replica_bundle){.bundle = -1, .next = -1};
    t.owners = arena_array(a, s->n_placement_groups, sizeof *t.owners);
    size_t i = 0;
    while (i < s->n_placement_groups && take_placementgroup(&t, i))
        i++;
    if (i == s->n_placement_groups && t.named < s->replicas)
        refuse(&t, arena_printf(a, "spec.replicas is %d, but spec.placement.groups has %d bundles", s->replicas,
                                (int)t.named));
    join_pods(&t);
    take_master(&t);
    find_stale(&t);
    // No pod counts before all of them are available.
    if (bound || (!ret->refusal.reason && !ret->wait_reason))
        return;
    for (int32_t k = 0; k < s->replicas; k++)
        ret->replicas[k].pod = NULL;
    ret->master_host = NULL;
}

bool group_bundles_wait(const struct group_bundles *p)
{
    return p->wait_reason && !str_eq(p->wait_reason, REASON_TERMINATING);
}

bool group_bundles_uncounted(const struct workergroup *wg, const struct replica_bundle *b)
{
    return b->uncounted && wg->spec.worker.gpus != 0; // 0 hides all devices
}

size_t group_bundles_gpus(const struct workergroup *wg, const struct replica_bundle *b, int32_t local, struct arena *a,
                          int **ret)
{
    int32_t each = wg->spec.workers_per_replica, asked = wg->spec.worker.gpus;
    int32_t n = asked >= 0 ? MIN(asked, b->gpus) : MIN(MAX(b->gpus / each, 1), b->gpus);
    int64_t from = asked < 0 && b->gpus < each ? (int64_t)local * b->gpus / each : (int64_t)local * n;
    *ret = arena_array(a, (size_t)n, sizeof **ret);
    for (int32_t i = 0; i < n; i++)
        (*ret)[i] = b->gpu + (int32_t)((from + i) % b->gpus);
    return (size_t)n;
}

int64_t group_bundles_template_grace_s(const struct placementgroup *plg)
{
    return template_of(plg).grace_s;
}

int64_t group_bundles_grace_s(const struct group_view *v)
{
    const struct placementgroup *const *groups = v->as_running ? v->placementgroups_running : v->placementgroups;
    size_t n = (v->as_running ? v->as_running : v->wg)->spec.n_placement_groups;
    int64_t least = INT64_MAX; // a pod that is being deleted gets no more time
    for (size_t i = 0; i < n; i++)
        least = MIN(least, group_bundles_template_grace_s(groups[i]));
    return least;
}

const struct pod *group_bundles_pod(const struct group_view *v, int32_t rank, struct arena *a)
{
    struct group_bundles p;
    int32_t replica = rank / MAX(v->wg->spec.workers_per_replica, 1);
    if (replica >= v->wg->spec.replicas)
        return NULL;
    group_bundles_take(v, true, a, &p);
    return p.replicas[replica].pod;
}
