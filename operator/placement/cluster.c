// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/cluster.h"

#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/placement/room.h"

#include <stdlib.h>
#include <string.h>

struct cluster {
    struct map rooms;     // by node name: rooms of nodes that exist, or that have occupants
    struct map occupants; // by "namespace/name"
    struct room **nodes;  // the rooms whose node exists, in natural order
    size_t n_nodes, size_nodes;
    struct map owners; // by UID
    int32_t lowest_priority;
    uint64_t epoch;
    int64_t outage_ms; // when the API server was back from its last outage; 0 = there was none
};

struct cluster *cluster_new(void)
{
    struct cluster *c = xcalloc(1, sizeof *c);
    c->lowest_priority = INT32_MAX;
    return c;
}

static void occupant_free(struct occupant *t)
{
    if (t->pod)
        object_unref(&t->pod->obj);
    free(t);
}

void cluster_free(struct cluster *c)
{
    if (!c)
        return;
    void *value;
    for (size_t i = 0; map_next(&c->occupants, &i, NULL, &value);)
        occupant_free(value);
    for (size_t i = 0; map_next(&c->rooms, &i, NULL, &value);)
        room_free(value);
    for (size_t i = 0; map_next(&c->owners, &i, NULL, &value);)
        free(value);
    map_done(&c->owners);
    map_done(&c->occupants);
    map_done(&c->rooms);
    free(c->nodes);
    free(c);
}

static struct room *room_of(struct cluster *c, const char *name)
{
    struct room *r = map_get(&c->rooms, name);
    if (!r) {
        r = room_new(name);
        map_set(&c->rooms, name, r);
    }
    return r;
}

static void settle(struct cluster *c, struct room *r)
{
    if (room_settle(r))
        c->epoch++;
}

static void drop_if_void(struct cluster *c, struct room *r)
{
    if (r->node || !list_empty(&r->occupants) || !list_empty(&r->unbound))
        return;
    map_del(&c->rooms, r->name);
    room_free(r);
}

// The position of the name among the nodes, or where it would be inserted.
static size_t find(const struct cluster *c, const char *name)
{
    size_t lo = 0, hi = c->n_nodes;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (str_cmp_natural(c->nodes[mid]->name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void renumber(struct cluster *c, size_t from)
{
    for (size_t i = from; i < c->n_nodes; i++)
        c->nodes[i]->number = i;
}

static void nodes_insert(struct cluster *c, struct room *r)
{
    if (c->n_nodes == c->size_nodes) {
        c->size_nodes = c->size_nodes ? c->size_nodes * 2 : 16;
        c->nodes = xrealloc(c->nodes, c->size_nodes, sizeof *c->nodes);
    }
    size_t at = find(c, r->name);
    memmove(c->nodes + at + 1, c->nodes + at, (c->n_nodes - at) * sizeof *c->nodes);
    c->nodes[at] = r;
    c->n_nodes++;
    renumber(c, at);
}

static void nodes_remove(struct cluster *c, const struct room *r)
{
    size_t at = find(c, r->name);
    c->n_nodes--;
    memmove(c->nodes + at, c->nodes + at + 1, (c->n_nodes - at) * sizeof *c->nodes);
    renumber(c, at);
}

static bool labels_equal(const struct labels *a, const struct labels *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!str_eq(a->items[i].key, b->items[i].key) || !str_eq(a->items[i].value, b->items[i].value))
            return false;
    return true;
}

static bool taints_equal(const struct node *a, const struct node *b)
{
    if (a->n_taints != b->n_taints)
        return false;
    for (size_t i = 0; i < a->n_taints; i++) {
        const struct taint *x = &a->taints[i], *y = &b->taints[i];
        if (!str_eq(x->key, y->key) || !str_eq(x->value, y->value) || !str_eq(x->effect, y->effect))
            return false;
    }
    return true;
}

// Returns true if both look the same to the planner. Most updates of a node are heartbeats: they must not wake the
// gangs that wait for room.
static bool nodes_equal(const struct node *a, const struct node *b)
{
    return a->ready == b->ready && a->unschedulable == b->unschedulable &&
           resources_equal(&a->allocatable, &b->allocatable) && taints_equal(a, b) &&
           labels_equal(&a->obj.meta.labels, &b->obj.meta.labels);
}

void cluster_set_node(struct cluster *c, const struct node *node)
{
    struct room *r = room_of(c, node->obj.meta.name);
    if (!r->node)
        nodes_insert(c, r);
    if (!r->node || !nodes_equal(r->node, node))
        c->epoch++;
    room_set_node(r, node);
    settle(c, r);
}

void cluster_del_node(struct cluster *c, const char *name)
{
    struct room *r = map_get(&c->rooms, name);
    if (!r || !r->node)
        return;
    nodes_remove(c, r);
    room_set_node(r, NULL);
    settle(c, r);
    c->epoch++; // no room appears, but the messages of waiting gangs change
    drop_if_void(c, r);
}

static char *pod_key(const char *ns, const char *name)
{
    return xasprintf("%s/%s", ns ? ns : "", name);
}

int32_t cluster_lowest_priority(const struct cluster *c)
{
    return c->lowest_priority;
}

// The strings of an owner come from the owner reference of the last pod in its list.
static struct pod_owner *owner_of(struct cluster *c, const char *uid)
{
    struct pod_owner *o = map_get(&c->owners, uid);
    if (!o) {
        o = xcalloc(1, sizeof *o);
        list_init(&o->occupants);
        map_set(&c->owners, uid, o);
    }
    return o;
}

static void owner_describe(struct pod_owner *o)
{
    const struct meta *m = &CONTAINER_OF(o->occupants.prev, struct occupant, of_owner)->pod->obj.meta;
    o->kind = m->owner.kind;
    o->ns = m->ns;
    o->name = m->owner.name;
}

static void move_in(struct cluster *c, struct occupant *t)
{
    room_take(t->room, t);
    list_init(&t->of_owner);
    if (!t->pod)
        return;
    c->lowest_priority = MIN(c->lowest_priority, t->pod->priority);
    const char *uid = t->pod->obj.meta.owner.uid;
    if (uid) {
        struct pod_owner *o = owner_of(c, uid);
        list_append(&o->occupants, &t->of_owner);
        owner_describe(o);
    }
}

static void move_out(struct cluster *c, struct occupant *t)
{
    room_give(t->room, t);
    if (!t->pod)
        return;
    const char *uid = t->pod->obj.meta.owner.uid;
    if (!uid)
        return;
    struct pod_owner *o = map_get(&c->owners, uid);
    list_remove(&t->of_owner);
    if (!list_empty(&o->occupants)) {
        owner_describe(o);
        return;
    }
    map_del(&c->owners, uid);
    free(o);
}

const struct pod_owner *cluster_next_owner(const struct cluster *c, size_t *i)
{
    void *value = NULL;
    return map_next(&c->owners, i, NULL, &value) ? value : NULL;
}

// Puts `next` (NULL = nobody) in the place of the occupant with this key.
static void replace(struct cluster *c, const char *key, struct occupant *next)
{
    if (next)
        move_in(c, next);
    struct occupant *old = next ? map_set(&c->occupants, key, next) : map_del(&c->occupants, key);
    if (old && next && old->room == next->room)
        room_succeed(next->room, old, next);
    if (old)
        move_out(c, old);
    if (next)
        settle(c, next->room);
    if (!old)
        return;
    if (!next || next->room != old->room || !resources_equal(&next->requests, &old->requests))
        c->epoch++;
    settle(c, old->room);
    drop_if_void(c, old->room);
    occupant_free(old);
}

void cluster_set_pod(struct cluster *c, const struct pod *pod)
{
    _cleanup_(free_p) char *key = pod_key(pod->obj.meta.ns, pod->obj.meta.name);
    const char *node = pod->node ? pod->node : pod->pin;
    struct occupant *t = NULL;
    if (node && !pod_terminal(pod)) {
        object_ref(&pod->obj);
        t = xcalloc(1, sizeof *t);
        *t = (struct occupant){.room = room_of(c, node),
                               .pod = pod,
                               .requests = pod->requests,
                               .ours = labels_get(&pod->obj.meta.labels, LABEL_GROUP)};
    }
    replace(c, key, t);
}

void cluster_del_pod(struct cluster *c, const char *ns, const char *name)
{
    _cleanup_(free_p) char *key = pod_key(ns, name);
    replace(c, key, NULL);
}

static bool is_watched(const struct cluster *c, const char *key)
{
    const struct occupant *t = map_get(&c->occupants, key);
    return t && t->pod;
}

void cluster_assume(struct cluster *c, const char *ns, const char *name, const char *node,
                    const struct resources *requests)
{
    _cleanup_(free_p) char *key = pod_key(ns, name);
    if (is_watched(c, key))
        return;
    size_t size = requests->n * sizeof *requests->items;
    struct occupant *t = xcalloc(1, sizeof *t + size);
    *t = (struct occupant){.room = room_of(c, node), .requests = {(struct resource *)(t + 1), requests->n}};
    if (size)
        memcpy(t->requests.items, requests->items, size);
    replace(c, key, t);
}

void cluster_unassume(struct cluster *c, const char *ns, const char *name)
{
    _cleanup_(free_p) char *key = pod_key(ns, name);
    if (!is_watched(c, key))
        replace(c, key, NULL);
}

uint64_t cluster_epoch(const struct cluster *c)
{
    return c->epoch;
}

size_t cluster_nodes(const struct cluster *c)
{
    return c->n_nodes;
}

const struct room *const *cluster_rooms(const struct cluster *c)
{
    return (const struct room *const *)c->nodes;
}

const struct room *cluster_room(const struct cluster *c, const char *name)
{
    const struct room *r = map_get(&c->rooms, name);
    return r && r->node ? r : NULL;
}

const struct node *cluster_node(const struct cluster *c, const char *name)
{
    const struct room *r = cluster_room(c, name);
    return r ? r->node : NULL;
}

void cluster_note_silence(struct cluster *c, const char *name, int64_t since_ms)
{
    struct room *r = map_get(&c->rooms, name);
    if (r && r->node && !r->node->ready)
        r->silent_ms = since_ms;
}

void cluster_note_outage(struct cluster *c, int64_t from_ms, int64_t until_ms)
{
    if (until_ms - from_ms >= CLUSTER_OUTAGE_MS)
        c->outage_ms = until_ms;
}

void cluster_clock_moved(struct cluster *c, int64_t ms)
{
    void *value;
    c->outage_ms += c->outage_ms ? ms : 0;
    for (size_t i = 0; map_next(&c->rooms, &i, NULL, &value);) {
        struct room *r = value;
        r->silent_ms += r->silent_ms ? ms : 0;
    }
}

int64_t cluster_silent_ms(const struct cluster *c, const char *name)
{
    const struct room *r = cluster_room(c, name);
    if (!r)
        return 0;
    int64_t since = r->silent_ms ? r->silent_ms : r->node->ready_changed_ms;
    return c->outage_ms ? MAX(since, c->outage_ms + CLUSTER_REPORT_MS) : since;
}

bool cluster_silent(const struct cluster *c, const char *name, int64_t now_ms, int64_t *ret_ms)
{
    const struct node *n = cluster_node(c, name);
    int64_t left = c->outage_ms ? c->outage_ms + CLUSTER_REPORT_MS - now_ms : 0;
    if (!n || n->ready)
        return false;
    if (left > 0)
        *ret_ms = MIN(left, CLUSTER_REPORT_MS);
    return left <= 0;
}
