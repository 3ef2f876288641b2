// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/proxy_group.h"

#include "common/base/str.h"
#include "common/wire/mode.h"
#include "operator/proxy/ranking.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_RANKS = 8 }; // most ranks that a message names

#define AWAITS_CODE                                                                                                  \
    "wait for their code, which another pod of the namespace gives, or the program that made the group while it is " \
    "connected"

struct group *group_new(const char *uid, const char *ns, const char *name, struct stats_common *stats)
{
    struct group *g = xcalloc(1, sizeof *g);
    *g = (struct group){.uid = xstrdup(uid), .ns = xstrdup(ns), .name = xstrdup(name)};
    group_key(g->key, ns, name, strlen(name));
    stats_init(&g->stats, stats);
    list_init(&g->heard);
    list_init(&g->waiting);
    list_init(&g->kills);
    list_init(&g->calls);
    list_init(&g->stale);
    list_init(&g->gone);
    for (size_t i = 0; i <= MEMBER_LANES_MAX; i++)
        list_init(&g->tasks[i]);
    list_init(&g->members);
    g->ranking = xmalloc(sizeof *g->ranking);
    ranking_init(g->ranking, &g->members);
    return g;
}

static void ranks_free(struct group *g)
{
    for (uint32_t i = 0; i < g->world; i++)
        free(g->ranks[i].gpus);
    free(g->ranks);
}

void group_free(struct group *g)
{
    assert(!g->n_connected && list_empty(&g->calls));
    LIST_FOREACH(l, &g->members) {
        CONTAINER_OF(l, struct member, of_group)->group = NULL;
        list_remove(l);
    }
    list_remove(&g->stale);
    list_remove(&g->gone);
    free(g->uid);
    free(g->ns);
    free(g->name);
    free(g->refusal);
    free(g->status);
    free(g->reason);
    ranks_free(g);
    ranking_done(g->ranking);
    free(g->ranking);
    stats_done(&g->stats);
    arena_done(&g->memory);
    free(g);
}

void group_key(char out[GROUP_KEY_SIZE], const char *ns, const char *name, size_t name_len)
{
    size_t n = MIN(strlen(ns), (size_t)GROUP_KEY_SIZE - 2);
    memcpy(out, ns, n); // this runs for each call that names its group, and snprintf() would cost too much
    out[n++] = '/';
    name_len = MIN(name_len, GROUP_KEY_SIZE - 1 - n);
    memcpy(out + n, name, name_len);
    out[n + name_len] = '\0';
}

static void replace(char **at, const char *text)
{
    free(*at);
    *at = text ? xstrdup(text) : NULL;
}

void group_update(struct group *g, const struct group_facts *f)
{
    if (f->world != g->world) {
        assert(!g->n_connected);
        ranks_free(g);
        g->ranks = xcalloc(f->world, sizeof *g->ranks);
        g->world = f->world;
        stats_world(&g->stats, f->world);
    }
    // A process may have shown a newer ticket than the watch has reported.
    g->attempt = MAX(g->attempt, f->attempt);
    g->oldest = MAX(g->oldest, f->oldest);
    replace(&g->refusal, f->refusal);
    replace(&g->status, f->status);
    replace(&g->reason, f->reason);
    if (f->meshes_to_come)
        return;
    arena_done(&g->memory);
    // Most groups have none, and need no memory.
    g->meshes = f->n_meshes ? meshes_copy(f->meshes, f->n_meshes, &g->memory) : NULL;
    g->n_meshes = f->n_meshes;
}

static bool same_meshes(const struct member *a, const struct member *b)
{
    bool same = a->n_meshes == b->n_meshes;
    for (size_t i = 0; same && i < a->n_meshes; i++)
        same = mesh_same(&a->meshes[i], &b->meshes[i]);
    return same;
}

int group_meshes(const struct group *g, struct arena *a, const struct mesh **ret, size_t *ret_n, struct err *err)
{
    const struct member *first = NULL;
    LIST_FOREACH(l, &g->members) {
        const struct member *m = CONTAINER_OF(l, struct member, of_group);
        if (!m->registered)
            continue;
        first = first ? first : m;
        if (!same_meshes(first, m))
            return err_set(err, ERR_CONFLICT, "ranks %u and %u of %s do not publish the same meshes", first->rank,
                           m->rank, g->key);
    }
    size_t n = g->n_meshes, published = first ? first->n_meshes : 0;
    struct mesh *all = arena_array(a, n + published, sizeof *all);
    if (n)
        memcpy(all, g->meshes, n * sizeof *all);
    for (size_t i = 0; i < published; i++) {
        size_t k = 0;
        while (k < g->n_meshes && !str_eq(all[k].name, first->meshes[i].name))
            k++;
        if (k == g->n_meshes)
            all[n++] = first->meshes[i];
    }
    *ret = all;
    *ret_n = n;
    return 0;
}

int group_refuses(const struct group *g, struct err *err)
{
    return g->refusal ? err_set(err, ERR_UNAVAILABLE, "%s takes no calls: %s", g->key, g->refusal) : 0;
}

int group_serves(const struct group *g, uint32_t rank, int64_t attempt, struct err *err)
{
    if (rank != RECORD_GROUP && rank >= g->world)
        return err_set(err, ERR_INVALID, "%s has no rank %u; its ranks are 0 to %u", g->key, rank, g->world - 1);
    if (attempt && attempt < g->attempt)
        return err_set(err, ERR_CONFLICT,
                       "the call is for attempt %lld of %s, which has ended: the group is at attempt %u",
                       (long long)attempt, g->key, g->attempt);
    return attempt > g->attempt;
}

int group_admits(const struct group *g, const struct member *m, struct err *err)
{
    if (m->rank >= g->world)
        return err_set(err, ERR_INVALID, "%s has no rank %u, only %u ranks", g->key, m->rank, g->world);
    const struct group_rank *at = &g->ranks[m->rank];
    uint32_t oldest = g->oldest;
    if (at->member)
        oldest = MAX(oldest, at->member->attempt);
    if (at->exit_attempt) // that process has ended: another one shows its ticket
        oldest = MAX(oldest, at->exit_attempt + 1);
    if (m->attempt < oldest)
        return err_set(err, ERR_CONFLICT, "rank %u of %s: attempt %u is over, the group is at attempt %u", m->rank,
                       g->key, m->attempt, MAX(g->attempt, oldest));
    return 0;
}

struct group *group_bootstrap(struct group *g, bool *ret_new)
{
    *ret_new = !g->bootstrap;
    if (g->bootstrap)
        return g->bootstrap;
    char *name = xasprintf("%s" GROUP_BOOTSTRAP, g->name);
    g->bootstrap = group_new(g->uid, g->ns, name, g->stats.common);
    free(name);
    group_update(g->bootstrap, &(struct group_facts){.world = g->world,
                                                     .attempt = g->attempt,
                                                     .oldest = g->oldest,
                                                     .refusal = g->refusal,
                                                     .status = g->status,
                                                     .reason = g->reason});
    return g->bootstrap;
}

void group_join(struct group *g, struct member *m)
{
    assert(!g->ranks[m->rank].member && !m->group);
    g->ranks[m->rank].member = m;
    m->registered = true;
    g->n_connected++;
    g->attempt = MAX(g->attempt, m->attempt);
    m->group = g;
    struct list *at = &g->members; // most members come in order
    while (at->prev != &g->members && CONTAINER_OF(at->prev, struct member, of_group)->rank > m->rank)
        at = at->prev;
    list_insert_before(at, &m->of_group);
    ranking_stale(g->ranking);
}

void group_leave(struct member *m)
{
    if (!m->registered)
        return;
    m->group->ranks[m->rank].member = NULL;
    m->registered = false;
    m->group->n_connected--;
    ranking_stale(m->group->ranking);
}

struct member *group_member_at(const struct group *g, int64_t rank)
{
    return rank >= 0 && rank < g->world ? g->ranks[rank].member : NULL;
}

// A group may have far more ranks than are connected.
const struct member *group_first(const struct group *g)
{
    LIST_FOREACH(l, &g->members)
        if (CONTAINER_OF(l, struct member, of_group)->registered)
            return CONTAINER_OF(l, struct member, of_group);
    return NULL;
}

void group_gpus_set(struct group *g, uint32_t rank, const char *json)
{
    if (rank < g->world)
        replace(&g->ranks[rank].gpus, *json ? json : NULL);
}

uint32_t group_missing(const struct group *g, uint32_t from, uint32_t n)
{
    if (g->n_connected == g->world)
        return g->world;
    for (uint32_t i = from; i < from + n; i++)
        if (!g->ranks[i].member)
            return i;
    return g->world;
}

void group_explain(const struct group *g, struct buf *out)
{
    uint32_t missing = g->world - g->n_connected, named = 0;
    buf_printf(out, "%s is not ready: %u of %u ranks are connected", g->key, g->n_connected, g->world);
    for (uint32_t i = 0; i < g->world && named < NAMED_RANKS; i++)
        if (!g->ranks[i].member)
            buf_printf(out, "%s%u", named++ ? ", " : ", missing: ", i);
    if (missing > named)
        buf_printf(out, ", and %u more", missing - named);
    if (g->bootstrap && g->bootstrap->n_connected)
        buf_printf(out, "; %u of them " AWAITS_CODE, g->bootstrap->n_connected);
    if (!str_empty(g->status))
        buf_printf(out, "; %s", g->status);
}

static void info_methods(const struct member *of, const struct member_role *role, struct json_writer *w)
{
    writer_list(w, "methods");
    for (size_t i = 0; role && i < role->n_methods; i++) {
        const struct member_method *m = &role->methods[i];
        writer_object(w, NULL);
        writer_str(w, "name", m->name);
        writer_str(w, "dispatch", mode_dispatch_name(m->dispatch));
        writer_str(w, "execute", mode_execute_name(m->execute));
        if (m->split)
            writer_raw(w, "split", m->split, strlen(m->split));
        if (m->collect)
            writer_raw(w, "collect", m->collect, strlen(m->collect));
        if (m->lane)
            writer_print(w, "concurrency", "{'group':%s,'limit':%" PRId64 "}", of->lanes[m->lane].group,
                         (int64_t)of->lanes[m->lane].limit);
        writer_object_end(w);
    }
    writer_list_end(w);
}

static void info_roles(const struct group *g, struct json_writer *w)
{
    const struct member *first = group_first(g);
    if (!first || !first->roles->name) {
        info_methods(first, first ? first->roles : NULL, w);
        return;
    }
    writer_list(w, "roles");
    for (size_t i = 0; i < first->n_roles; i++) {
        writer_object(w, NULL);
        writer_str(w, "name", first->roles[i].name);
        writer_str_set(w, "class", first->roles[i].class);
        info_methods(first, &first->roles[i], w);
        writer_object_end(w);
    }
    writer_list_end(w);
}

static void info_meshes(const struct group *g, struct json_writer *w)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    const struct mesh *meshes;
    size_t n;
    if (group_meshes(g, &a, &meshes, &n, &err) == 0 && n)
        meshes_write(w, "meshes", meshes, n);
}

static void info_workers(const struct group *g, uint32_t from, struct json_writer *w)
{
    uint32_t end = g->world - MIN(from, g->world) > GROUP_INFO_RANKS ? from + GROUP_INFO_RANKS : g->world;
    writer_list(w, "workers");
    for (uint32_t i = from; i < end; i++) {
        const struct member *m = g->ranks[i].member;
        writer_object(w, NULL);
        writer_i64(w, "rank", i);
        writer_bool(w, "connected", m != NULL);
        if (!m && g->bootstrap && (m = g->bootstrap->ranks[i].member))
            writer_str(w, "awaits", m->awaits);
        if (m) {
            writer_i64(w, "attempt", m->attempt);
            writer_str_set(w, "pod", m->pod);
            writer_str_set(w, "node", m->node);
        }
        if (g->ranks[i].gpus)
            writer_raw(w, "gpus", g->ranks[i].gpus, strlen(g->ranks[i].gpus));
        writer_object_end(w);
    }
    writer_list_end(w);
    if (end < g->world)
        writer_i64(w, "next", end);
}

static void info_message(const struct group *g, struct json_writer *w)
{
    char waiting[256];
    uint32_t n = g->bootstrap ? g->bootstrap->n_connected : 0;
    snprintf(waiting, sizeof waiting, "%u of %u ranks " AWAITS_CODE, n, g->world);
    writer_str_set(w, "message", g->refusal ? g->refusal : n ? waiting : g->status);
}

void group_names_write(const struct group *g, struct json_writer *w)
{
    writer_str(w, "namespace", g->ns);
    writer_str(w, "name", g->name);
    writer_str(w, "uid", g->uid);
    writer_str_set(w, "replica", g->stats.common->replica);
}

void group_info(const struct group *g, uint32_t from, struct buf *out)
{
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    group_names_write(g, &w);
    writer_i64(&w, "attempt", g->attempt);
    writer_i64(&w, "worldSize", g->world);
    writer_i64(&w, "connected", g->n_connected);
    writer_bool(&w, "ready", !g->refusal && g->world && g->n_connected == g->world);
    writer_str_set(&w, "status", g->reason);
    info_message(g, &w);
    info_workers(g, from, &w);
    info_meshes(g, &w);
    info_roles(g, &w);
    writer_object_end(&w);
    buf_append(out, buf_str(&w.buf), w.buf.len);
}
