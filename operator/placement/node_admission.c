// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/node_admission.h"

#include "common/base/str.h"
#include "operator/api/pod_constraints.h"

#include <string.h>

const char *node_domain(const struct node *n, const char *topology_key)
{
    if (strcmp(topology_key, TOPOLOGY_HOSTNAME) == 0)
        return n->obj.meta.name;
    return labels_get(&n->obj.meta.labels, topology_key);
}

static bool same(const char *a, const char *b) // a missing string is an empty one
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool tolerates(const struct toleration *t, const struct taint *taint)
{
    if (!str_empty(t->effect) && !same(t->effect, taint->effect))
        return false;
    if (str_empty(t->key))
        return t->exists;
    return same(t->key, taint->key) && (t->exists || same(t->value, taint->value));
}

static bool keeps_out(const struct taint *taint, const struct pod_constraints *p)
{
    if (!same(taint->effect, "NoSchedule") && !same(taint->effect, "NoExecute"))
        return false; // PreferNoSchedule is a wish
    for (size_t i = 0; i < p->n_tolerations; i++)
        if (tolerates(&p->tolerations[i], taint))
            return false;
    return true;
}

static bool is_among(const char *value, const struct match *m)
{
    for (size_t i = 0; i < m->n_values; i++)
        if (strcmp(m->values[i], value) == 0)
            return true;
    return false;
}

// Gt and Lt compare integers. A value that is not an integer matches nothing. A bound below 0 matches nothing either:
// kube-scheduler rejects it as the value of a label, and it spoils the term.
static bool compares(const char *value, const struct match *m)
{
    int64_t have, bound;
    if (m->n_values != 1 || !str_to_i64(value, &have) || !str_to_i64(m->values[0], &bound) || bound < 0)
        return false;
    return m->op == MATCH_GT ? have > bound : have < bound;
}

static bool match_holds(const struct match *m, const struct node *n)
{
    const char *value;
    if (!m->field)
        value = labels_get(&n->obj.meta.labels, m->key);
    else
        value = strcmp(m->key, "metadata.name") == 0 ? n->obj.meta.name : NULL;

    switch (m->op) {
    case MATCH_IN:
        return value && is_among(value, m);
    case MATCH_NOT_IN:
        return !value || !is_among(value, m);
    case MATCH_EXISTS:
        return value;
    case MATCH_NOT_EXISTS:
        return !value;
    case MATCH_GT:
    case MATCH_LT:
        return value && compares(value, m);
    }
    return false;
}

static bool term_holds(const struct node_term *t, const struct node *n)
{
    for (size_t i = 0; i < t->n; i++)
        if (!match_holds(&t->matches[i], n))
            return false;
    return t->n > 0; // to Kubernetes an empty term selects no node
}

static bool is_selected(const struct node *n, const struct pod_constraints *p)
{
    for (size_t i = 0; i < p->node_selector.n; i++) {
        const struct label *want = &p->node_selector.items[i];
        const char *value = labels_get(&n->obj.meta.labels, want->key);
        if (!value || !same(value, want->value))
            return false;
    }
    for (size_t i = 0; i < p->n_terms; i++)
        if (term_holds(&p->terms[i], n))
            return true;
    return p->n_terms == 0;
}

static bool is_large_enough(const struct node *n, const struct resources *requests)
{
    for (size_t i = 0; i < requests->n; i++)
        if (resources_get(&n->allocatable, requests->items[i].id) < requests->items[i].milli)
            return false;
    return true;
}

enum node_verdict node_admits(const struct node *n, const struct pod_constraints *p, const char *topology_key)
{
    if (!is_selected(n, p))
        return NODE_UNMATCHED;
    if (!node_domain(n, topology_key))
        return NODE_NO_DOMAIN;
    if (!is_large_enough(n, &p->requests))
        return NODE_TOO_SMALL;
    // Before the taints: a cordon and a lost node bring taints of their own, which would hide the cause.
    if (!n->ready)
        return NODE_NOT_READY;
    if (n->unschedulable)
        return NODE_CORDONED;
    for (size_t i = 0; i < n->n_taints; i++)
        if (keeps_out(&n->taints[i], p))
            return NODE_TAINTED;
    return NODE_OK;
}
