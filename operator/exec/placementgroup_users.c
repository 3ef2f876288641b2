// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/placementgroup_users.h"

#include "common/base/json_writer.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/record.h"
#include "operator/api/podagent.h"
#include "operator/reconcile/group_bundles.h"
#include "operator/reconcile/running_spec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct placementgroup_user {
    char *key, *uid;
    int64_t created_ms;
};

struct group_users {                   // the users of one PlacementGroup
    struct placementgroup_user *users; // oldest first
    size_t n;
};

struct placementgroup_users {
    struct map groups; // "namespace/name" -> struct group_users
};

struct placementgroup_users *placementgroup_users_new(void)
{
    return xcalloc(1, sizeof(struct placementgroup_users));
}

static void user_done(struct placementgroup_user *u)
{
    free(u->key);
    free(u->uid);
}

void placementgroup_users_free(struct placementgroup_users *t)
{
    if (!t)
        return;
    void *value;
    for (size_t i = 0; map_next(&t->groups, &i, NULL, &value);) {
        struct group_users *g = value;
        for (size_t k = 0; k < g->n; k++)
            user_done(&g->users[k]);
        free(g->users);
        free(g);
    }
    map_done(&t->groups);
    free(t);
}

static struct group_users *users_of(const struct placementgroup_users *t, const char *ns, const char *name)
{
    _cleanup_(free_p) char *key = xasprintf("%s/%s", ns, name);
    return map_get(&t->groups, key);
}

static struct placementgroup_user *user_of(const struct group_users *g, const char *uid)
{
    for (size_t i = 0; g && i < g->n; i++)
        if (str_eq(g->users[i].uid, uid))
            return &g->users[i];
    return NULL;
}

static bool is_older(const struct placementgroup_user *a, const struct placementgroup_user *b)
{
    return a->created_ms != b->created_ms ? a->created_ms < b->created_ms : str_cmp(a->key, b->key) < 0;
}

static void add_user(struct placementgroup_users *t, const struct meta *m, const char *name)
{
    struct group_users *g = users_of(t, m->ns, name);
    if (user_of(g, m->uid))
        return;
    if (!g) {
        _cleanup_(free_p) char *key = xasprintf("%s/%s", m->ns, name);
        g = xcalloc(1, sizeof *g);
        map_set(&t->groups, key, g);
    }
    g->users = xrealloc(g->users, g->n + 1, sizeof *g->users);
    const struct placementgroup_user came = {xasprintf("%s/%s", m->ns, m->name), xstrdup(m->uid), m->created_ms};
    size_t at = g->n++;
    for (; at > 0 && is_older(&came, &g->users[at - 1]); at--)
        g->users[at] = g->users[at - 1];
    g->users[at] = came;
}

static void remove_user(struct placementgroup_users *t, const struct meta *m, const char *name)
{
    struct group_users *g = users_of(t, m->ns, name);
    struct placementgroup_user *user = user_of(g, m->uid);
    if (!user)
        return;
    user_done(user);
    size_t at = (size_t)(user - g->users);
    memmove(user, user + 1, (--g->n - at) * sizeof *user);
    if (g->n)
        return;
    _cleanup_(free_p) char *key = xasprintf("%s/%s", m->ns, name);
    map_del(&t->groups, key);
    free(g->users);
    free(g);
}

// Calls `fn` for the PlacementGroups of its spec, and for those where its present attempt still runs.
static void each_placementgroup(struct placementgroup_users *t, const struct workergroup *wg,
                                void (*fn)(struct placementgroup_users *t, const struct meta *m, const char *name),
                                struct arena *a)
{
    const struct workergroup *before = wg ? running_spec(wg, a) : NULL;
    for (size_t i = 0; wg && i < wg->spec.n_placement_groups; i++)
        fn(t, &wg->obj.meta, wg->spec.placement_groups[i].name);
    for (size_t i = 0; before && i < before->spec.n_placement_groups; i++)
        fn(t, &wg->obj.meta, before->spec.placement_groups[i].name);
}

void placementgroup_users_set(struct placementgroup_users *t, const struct workergroup *old,
                              const struct workergroup *now)
{
    struct arena a = ARENA_INIT;
    each_placementgroup(t, old, remove_user, &a);
    each_placementgroup(t, now, add_user, &a);
    arena_done(&a);
}

void placementgroup_users_each(const struct placementgroup_users *t, const char *ns, const char *placementgroup,
                               placementgroup_users_fn fn, void *ctx)
{
    const struct group_users *g = users_of(t, ns, placementgroup);
    for (size_t i = 0; g && i < g->n; i++)
        fn(ctx, g->users[i].key);
}

bool placementgroup_users_has(const struct placementgroup_users *t, const char *ns, const char *placementgroup,
                              const char *group_uid)
{
    const struct group_users *g = users_of(t, ns, placementgroup);
    return group_uid ? user_of(g, group_uid) != NULL : g != NULL;
}

static void stop(struct agents *agents, const struct object *pod, const struct agent_group *g, int64_t grace_s)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    const char *order = json_print(&a, "{'group':%s,'attempt':%" PRId64 ",'graceMs':%" PRId64 "}", g->uid,
                                   (int64_t)g->attempt, grace_s * 1000);
    if (agents_command(agents, pod->meta.uid, g->uid, g->attempt, RECORD_STOP, order, &err) == 0)
        log_info("stopping processes of a WorkerGroup that no longer exists", "pod", pod->meta.name, "group", g->uid,
                 NULL);
    arena_done(&a);
}

bool placementgroup_users_stop_orphans(const struct placementgroup_users *t, struct agents *agents,
                                       struct store *const *stores, const struct object *placementgroup)
{
    const struct meta *m = &placementgroup->meta;
    int64_t grace_s = podagent_grace_s(group_bundles_template_grace_s(placementgroup_of(placementgroup)));
    struct arena a = ARENA_INIT;
    const struct object *const *owned;
    size_t n = store_by_owner(stores[KIND_POD], m, &a, &owned);
    bool unread = false;
    for (size_t i = 0; i < n; i++) {
        struct agent_group *groups;
        size_t n_groups = agents_groups(agents, owned[i]->meta.uid, &a, &groups);
        for (size_t k = 0; k < n_groups; k++) {
            bool runs = groups[k].state != AGENT_IDLE && groups[k].state != AGENT_STOPPING;
            if (!runs || placementgroup_users_has(t, m->ns, m->name, groups[k].uid))
                continue;
            if (store_is_unread(stores[KIND_WORKERGROUP], groups[k].uid))
                unread = true;
            else
                stop(agents, owned[i], &groups[k], grace_s);
        }
    }
    arena_done(&a);
    return unread;
}
