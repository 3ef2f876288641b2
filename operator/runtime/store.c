// SPDX-License-Identifier: Apache-2.0
// Three chained hash tables contain one small entry per object. It takes 64 bytes and about two heads of chains, and
// copies no key. The chains are doubly linked, so the cost of a change does not depend on the size of its group.
#include "operator/runtime/store.h"

#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SUBSCRIBERS = 4, FIRST_SIZE = 64, VERSION_MAX = 64 };

enum index { INDEX_NAME, INDEX_OWNER, INDEX_NODE, INDEX_COUNT }; // every object is in INDEX_NAME

struct chain {
    struct stored_object *next, **link; // `link` is the pointer to this entry; NULL = not in the index
};

struct stored_object {
    const struct object *object;
    struct chain chains[INDEX_COUNT];
    uint32_t mark; // number of the last list that contained the object
};

struct unread {
    uint32_t mark; // as in stored_object
    char uid[64];
};

struct table {
    struct stored_object **heads;
    size_t size; // a power of two; 0 until first use
    size_t used;
};

struct store {
    enum kind kind;
    bool complete;
    uint32_t mark;
    char seen[VERSION_MAX]; // the watch has reported everything up to this resourceVersion; "" = nothing yet
    char kept[VERSION_MAX]; // the oldest object that the present list has in an older version; "" = there is none
    struct table indexes[INDEX_COUNT];
    struct map unread; // objects that cannot be decoded and are not in the store: "namespace/name" -> struct unread
    struct {
        store_fn fn;
        void *ctx;
    } subscribers[MAX_SUBSCRIBERS];
    int n_subscribers;
};

// Returns the key of the object in this index. NULL or "" = it is not in this index.
static const char *indexed_by(enum index index, const struct object *o)
{
    switch (index) {
    case INDEX_NAME:
        return o->meta.name;
    case INDEX_OWNER:
        return o->meta.owner.uid;
    default:
        return o->kind == KIND_POD ? (pod_of(o)->node ? pod_of(o)->node : pod_of(o)->pin) : NULL;
    }
}

// Names of nodes have no namespace.
static struct stored_object **head_of(const struct table *t, enum index index, const char *ns, const char *value)
{
    uint64_t h = str_hash(value, strlen(value));
    if (index != INDEX_NODE)
        h ^= str_hash(ns, strlen(ns)) * 0x9e3779b97f4a7c15u;
    return &t->heads[(h ^ (h >> 32)) & (t->size - 1)];
}

static struct stored_object *chain_of(const struct store *s, enum index index, const char *ns, const char *value)
{
    const struct table *t = &s->indexes[index];
    return t->size ? *head_of(t, index, ns, value) : NULL;
}

static void chain_in(struct table *t, enum index index, struct stored_object *e)
{
    struct chain *c = &e->chains[index];
    struct stored_object **head = head_of(t, index, e->object->meta.ns, indexed_by(index, e->object));
    c->next = *head;
    c->link = head;
    if (c->next)
        c->next->chains[index].link = &c->next;
    *head = e;
}

static void chain_out(enum index index, struct stored_object *e)
{
    struct chain *c = &e->chains[index];
    *c->link = c->next;
    if (c->next)
        c->next->chains[index].link = c->link;
    *c = (struct chain){0};
}

static void grow(struct table *t, enum index index)
{
    struct table bigger = {.size = t->size ? t->size * 2 : FIRST_SIZE, .used = t->used};
    bigger.heads = xcalloc(bigger.size, sizeof(struct stored_object *));
    for (size_t i = 0; i < t->size; i++)
        for (struct stored_object *e = t->heads[i], *next; e; e = next) {
            next = e->chains[index].next;
            chain_in(&bigger, index, e);
        }
    free(t->heads);
    *t = bigger;
}

static void index_in(struct store *s, struct stored_object *e)
{
    for (enum index i = 0; i < INDEX_COUNT; i++) {
        struct table *t = &s->indexes[i];
        if (str_empty(indexed_by(i, e->object)))
            continue;
        if (t->used == t->size)
            grow(t, i);
        chain_in(t, i, e);
        t->used++;
    }
}

static void index_out(struct store *s, struct stored_object *e)
{
    for (enum index i = 0; i < INDEX_COUNT; i++)
        if (e->chains[i].link) {
            chain_out(i, e);
            s->indexes[i].used--;
        }
}

static struct stored_object *find(const struct store *s, const char *ns, const char *name)
{
    struct stored_object *e = chain_of(s, INDEX_NAME, ns, name);
    while (e && (strcmp(e->object->meta.name, name) != 0 || strcmp(e->object->meta.ns, ns) != 0))
        e = e->chains[INDEX_NAME].next;
    return e;
}

static struct stored_object *get(const struct store *s, const struct object *o)
{
    return find(s, o->meta.ns, o->meta.name);
}

static void tell(struct store *s, const struct object *old, const struct object *now)
{
    for (int i = 0; i < s->n_subscribers; i++)
        s->subscribers[i].fn(s->subscribers[i].ctx, old, now);
}

static struct stored_object *add(struct store *s, const struct object *o)
{
    struct stored_object *e = xcalloc(1, sizeof *e);
    e->object = object_ref(o);
    index_in(s, e);
    tell(s, NULL, o);
    return e;
}

static void change(struct store *s, struct stored_object *e, const struct object *o)
{
    const struct object *old = e->object;
    index_out(s, e);
    e->object = object_ref(o);
    index_in(s, e);
    tell(s, old, o);
    object_unref(old);
}

static void drop(struct store *s, struct stored_object *e)
{
    const struct object *old = e->object;
    index_out(s, e);
    free(e);
    tell(s, old, NULL);
    object_unref(old);
}

static void note(char to[VERSION_MAX], const char *resource_version)
{
    if (!str_empty(resource_version) && strlen(resource_version) < VERSION_MAX)
        snprintf(to, VERSION_MAX, "%s", resource_version);
}

static bool newer(const struct object *a, const struct object *b)
{
    return resource_version_cmp(a->meta.resource_version, b->meta.resource_version) > 0;
}

static struct stored_object *apply(struct store *s, struct stored_object *e, const struct object *o)
{
    if (!e)
        return add(s, o);
    if (!newer(o, e->object))
        return e;
    if (str_eq(o->meta.uid, e->object->meta.uid)) {
        change(s, e, o);
        return e;
    }
    drop(s, e);
    return add(s, o);
}

static void remember_unread(struct store *s, const struct object_peek *g)
{
    _cleanup_(free_p) char *key = xasprintf("%s/%s", g->ns, g->name);
    struct unread *u = map_get(&s->unread, key);
    if (!u)
        map_set(&s->unread, key, u = xcalloc(1, sizeof *u));
    u->mark = s->mark;
    snprintf(u->uid, sizeof u->uid, "%s", g->uid);
}

// uid NULL: whatever its UID is, because there is another object with its name now.
static void forget_unread(struct store *s, const struct meta *m, const char *uid)
{
    if (!s->unread.used)
        return;
    _cleanup_(free_p) char *key = xasprintf("%s/%s", m->ns, m->name);
    const struct unread *u = map_get(&s->unread, key);
    if (u && (!uid || str_eq(u->uid, uid)))
        free(map_del(&s->unread, key));
}

// Forgets those that the present list does not have.
static void drop_unread(struct store *s)
{
    struct map listed = MAP_INIT;
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&s->unread, &i, &key, &value);)
        if (((const struct unread *)value)->mark == s->mark)
            map_set(&listed, key, value);
        else
            free(value);
    map_done(&s->unread);
    s->unread = listed;
}

struct store *store_new(enum kind kind)
{
    struct store *s = xcalloc(1, sizeof *s);
    s->kind = kind;
    return s;
}

void store_free(struct store *s)
{
    if (!s)
        return;
    const struct table *all = &s->indexes[INDEX_NAME];
    for (size_t i = 0; i < all->size; i++)
        for (struct stored_object *e = all->heads[i], *next; e; e = next) {
            next = e->chains[INDEX_NAME].next;
            object_unref(e->object);
            free(e);
        }
    for (enum index i = 0; i < INDEX_COUNT; i++)
        free(s->indexes[i].heads);
    s->mark++;
    drop_unread(s);
    free(s);
}

enum kind store_kind(const struct store *s)
{
    return s->kind;
}

void store_subscribe(struct store *s, store_fn fn, void *ctx)
{
    assert(s->n_subscribers < MAX_SUBSCRIBERS);
    s->subscribers[s->n_subscribers].fn = fn;
    s->subscribers[s->n_subscribers++].ctx = ctx;
}

void store_saw(struct store *s, const char *resource_version)
{
    if (!*s->seen || resource_version_cmp(resource_version, s->seen) > 0)
        note(s->seen, resource_version);
}

void store_put(struct store *s, const struct object *o)
{
    struct stored_object *known = get(s, o);
    const char *version = known && newer(known->object, o) ? known->object->meta.resource_version : NULL;
    if (version && (!*s->kept || resource_version_cmp(version, s->kept) < 0))
        note(s->kept, version);
    forget_unread(s, &o->meta, NULL);
    apply(s, known, o)->mark = s->mark;
}

void store_deleted(struct store *s, const struct object *o)
{
    struct stored_object *e = get(s, o);
    forget_unread(s, &o->meta, o->meta.uid);
    if (e && !newer(e->object, o))
        drop(s, e);
}

void store_deleted_unread(struct store *s, const struct object_peek *g)
{
    struct stored_object *e = find(s, g->ns, g->name);
    forget_unread(s, &(struct meta){.ns = g->ns, .name = g->name}, g->uid);
    if (e && str_eq(e->object->meta.uid, g->uid))
        drop(s, e);
}

void store_wrote(struct store *s, const struct object *o)
{
    if (!store_is_past(s, o->meta.resource_version))
        apply(s, get(s, o), o);
}

bool store_holds(const struct store *s, const struct object_peek *g)
{
    const struct object *o = store_get(s, g->ns, g->name);
    return o && str_eq(o->meta.uid, g->uid) && str_eq(o->meta.resource_version, g->version);
}

bool store_is_past(const struct store *s, const char *resource_version)
{
    return *s->seen && resource_version_cmp(resource_version, s->seen) <= 0;
}

void store_list_begin(struct store *s)
{
    s->mark++;
    s->kept[0] = '\0';
}

bool store_list_goes_back(const struct store *s, const char *resource_version)
{
    return (*s->seen && resource_version_cmp(resource_version, s->seen) < 0) ||
           (*s->kept && resource_version_cmp(s->kept, resource_version) <= 0);
}

void store_keep(struct store *s, const struct object_peek *g)
{
    struct stored_object *e = find(s, g->ns, g->name);
    if (e && str_eq(e->object->meta.uid, g->uid))
        e->mark = s->mark;
    else
        remember_unread(s, g);
}

bool store_is_unread(const struct store *s, const char *uid)
{
    void *value;
    for (size_t i = 0; map_next(&s->unread, &i, NULL, &value);)
        if (str_eq(((const struct unread *)value)->uid, uid))
            return true;
    return false;
}

bool store_has_unread(const struct store *s, const char *ns, const char *name)
{
    _cleanup_(free_p) char *key = xasprintf("%s/%s", ns, name);
    return map_has(&s->unread, key);
}

void store_list_swap(struct store *s, const char *resource_version)
{
    const struct table *all = &s->indexes[INDEX_NAME];
    for (size_t i = 0; i < all->size; i++)
        for (struct stored_object *e = all->heads[i], *next; e; e = next) {
            next = e->chains[INDEX_NAME].next;
            if (e->mark != s->mark && resource_version_cmp(e->object->meta.resource_version, resource_version) <= 0)
                drop(s, e);
        }
    drop_unread(s);
    store_saw(s, resource_version);
    s->complete = true;
}

bool store_is_complete(const struct store *s)
{
    return s->complete;
}

const struct object *store_get(const struct store *s, const char *ns, const char *name)
{
    const struct stored_object *e = find(s, ns, name);
    return e ? e->object : NULL;
}

size_t store_count(const struct store *s)
{
    return s->indexes[INDEX_NAME].used;
}

static int by_name(const void *a, const void *b)
{
    const struct object *x = *(const struct object *const *)a, *y = *(const struct object *const *)b;
    int r = str_cmp_natural(x->meta.name, y->meta.name);
    return r ? r : strcmp(x->meta.ns, y->meta.ns);
}

static bool is_at(const struct stored_object *e, enum index index, const char *ns, const char *value)
{
    return str_eq(indexed_by(index, e->object), value) && (!ns || str_eq(e->object->meta.ns, ns));
}

// `ns` is NULL for nodes.
static size_t select_indexed(const struct store *s, enum index index, const char *ns, const char *value,
                             struct arena *a, const struct object *const **ret)
{
    struct stored_object *first = chain_of(s, index, ns, value); // the chain also contains others with this hash
    size_t n = 0;
    for (const struct stored_object *e = first; e; e = e->chains[index].next)
        n += is_at(e, index, ns, value);
    const struct object **found = arena_array(a, n, sizeof *found);
    n = 0;
    for (const struct stored_object *e = first; e; e = e->chains[index].next)
        if (is_at(e, index, ns, value))
            found[n++] = e->object;
    qsort(found, n, sizeof *found, by_name);
    *ret = found;
    return n;
}

size_t store_by_owner(const struct store *s, const struct meta *owner, struct arena *a,
                      const struct object *const **ret)
{
    return select_indexed(s, INDEX_OWNER, owner->ns, owner->uid, a, ret);
}

void store_each_on_node(const struct store *s, const char *node, void (*fn)(void *ctx, const struct object *o),
                        void *ctx)
{
    struct arena a = ARENA_INIT;
    const struct object *const *found;
    size_t n = select_indexed(s, INDEX_NODE, NULL, node, &a, &found);
    for (size_t i = 0; i < n; i++)
        fn(ctx, found[i]);
    arena_done(&a);
}

static int by_age(const void *x, const void *y)
{
    const struct meta *a = &(*(const struct object *const *)x)->meta, *b = &(*(const struct object *const *)y)->meta;
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms ? -1 : 1;
    return str_cmp(a->uid, b->uid);
}

void store_each(const struct store *s, void (*fn)(void *ctx, const struct object *o), void *ctx)
{
    const struct table *all = &s->indexes[INDEX_NAME];
    struct arena a = ARENA_INIT;
    const struct object **items = arena_array(&a, store_count(s), sizeof *items);
    size_t n = 0;
    for (size_t i = 0; i < all->size; i++)
        for (const struct stored_object *e = all->heads[i]; e; e = e->chains[INDEX_NAME].next)
            items[n++] = e->object;
    qsort(items, n, sizeof *items, by_age);
    for (size_t i = 0; i < n; i++)
        fn(ctx, items[i]);
    arena_done(&a);
}
