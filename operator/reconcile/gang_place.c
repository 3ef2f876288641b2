// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/gang_place.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod_constraints.h"
#include "operator/reconcile/reason.h"

static const struct pod_constraints *pod_of_gang(const struct gang *g)
{
    return g->bundles[0].constraints;
}

static struct line_member member_of(const struct gang_place_request *r, const struct gang *g)
{
    const struct meta *m = &r->owner->meta;
    return (struct line_member){
        .uid = m->uid,
        .ns = m->ns,
        .name = m->name,
        .kind = r->owner->kind,
        .priority = pod_of_gang(g)->priority,
        .created_ms = m->created_ms,
    };
}

static bool waits_for_room(const struct condition *c)
{
    return c && c->status == CONDITION_FALSE &&
           (str_eq(c->reason, REASON_INSUFFICIENT) || str_eq(c->reason, REASON_INFEASIBLE));
}

static int64_t since_ms(const struct gang_place_request *r, const struct line_answer *t)
{
    if (t->waits_since_ms)
        return t->waits_since_ms;
    return waits_for_room(r->scheduled) && r->scheduled->changed_ms ? r->scheduled->changed_ms : r->now_ms;
}

// Nodes that are already held are kept, so that their free room adds up. But if one of them has become useless, all are
// chosen again.
static bool still_good(const struct cluster *c, const struct line_answer *t)
{
    for (size_t i = 0; i < t->n_hold; i++) {
        const struct node *n = cluster_node(c, t->hold[i]);
        if (!n || !n->ready || n->unschedulable)
            return false;
    }
    return t->n_hold > 0;
}

static void choose_hold(const struct gang_place_request *r, const struct line_answer *t, const struct gang *g,
                        struct arena *a, struct line_note *note)
{
    const char **nodes;
    if (!t->holds)
        return;
    if (still_good(r->cluster, t)) {
        note->hold = t->hold;
        note->n_hold = t->n_hold;
        return;
    }
    if (!planner_target(r->cluster, g, a, &nodes))
        return;
    const char **distinct = arena_array(a, g->n_bundles, sizeof *distinct);
    for (size_t i = 0; i < g->n_bundles; i++) // bundles on one node are neighbours, except with several shapes
        if (note->n_hold == 0 || !str_eq(distinct[note->n_hold - 1], nodes[i]))
            distinct[note->n_hold++] = nodes[i];
    note->hold = distinct;
}

void gang_place(const struct gang_place_request *r, struct gang *g, struct arena *a, struct plan *plan,
                struct placement *ret)
{
    struct line_note *note = arena_new(a, struct line_note);
    struct line_answer t = {.look_again_ms = -1};
    g->uid = r->owner->meta.uid;
    g->ns = r->owner->meta.ns;
    *note = (struct line_note){.member = member_of(r, g), .requests = &pod_of_gang(g)->requests};
    if (r->line)
        line_ask(r->line, &note->member, r->now_ms, a, &t);
    if (!r->resumes) {
        g->held = t.held;
        g->n_held = t.n_held;
    }
    planner_place(r->cluster, g, a, ret);
    plan->line = note;
    if (ret->verdict == VERDICT_PLACED) {
        note->outcome = LINE_TAKES;
        return;
    }
    note->outcome = LINE_WAITS;
    note->since_ms = since_ms(r, &t);
    note->short_of = ret->short_of;
    if (ret->verdict == VERDICT_INSUFFICIENT) // it is useless to hold nodes that can never take the gang
        choose_hold(r, &t, g, a, note);
    if (r->line && !t.waits_since_ms)
        plan_requeue(plan, MAX(note->since_ms + LINE_PATIENCE_MS - r->now_ms, 0));
    else if (t.look_again_ms >= 0)
        plan_requeue(plan, t.look_again_ms);
}

const char *gang_place_message(const struct gang_place_request *r, const struct gang *g, const struct placement *p,
                               struct arena *a)
{
    struct line_member m = member_of(r, g);
    const char *ahead = r->line && p->verdict == VERDICT_INSUFFICIENT ? line_ahead(r->line, &m, p->short_of, a) : NULL;
    const char *text = p->message;
    if (p->details)
        text = arena_printf(a, "%s\n%s", text, p->details);
    return ahead ? arena_printf(a, "%s\nthese wait ahead of it: %s", text, ahead) : text;
}

const char *gang_place_victims(const struct placement *p, struct arena *a)
{
    if (p->n_victims == 0)
        return "";
    return p->n_victims == 1 ? ", 1 pod of lower priority is evicted for them"
                             : arena_printf(a, ", %zu pods of lower priority are evicted for them", p->n_victims);
}
