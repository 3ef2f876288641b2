// SPDX-License-Identifier: Apache-2.0
#include "operator/agents/sightings.h"

#include "common/base/arena.h"
#include "common/base/json.h"
#include "common/base/list.h"
#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/agents/agent_report.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct range {
    int32_t attempt, first, last;
};

struct seen_group {
    size_t n;
    struct range ranges[];
};

struct seen_pod {
    char *ns, *owner;
    bool shared;
};

struct sighter {
    struct list link;
    char *name;
    int64_t since_ms, heard_ms; // monotonic
    struct map pods, groups;    // by UID
};

struct sightings {
    struct sightings_config config;
    struct list sighters;
    size_t n_sighters;
};

struct sightings *sightings_new(const struct sightings_config *config)
{
    struct sightings *s = xcalloc(1, sizeof *s);
    s->config = *config;
    list_init(&s->sighters);
    return s;
}

void sightings_free(struct sightings *s)
{
    if (!s)
        return;
    assert(s->n_sighters == 0);
    free(s);
}

static int64_t mono_ms(const struct sightings *s)
{
    return clock_mono_ms(s->config.clock);
}

// What one replica says

static void pod_free(struct seen_pod *p)
{
    if (!p)
        return;
    free(p->ns);
    free(p->owner);
    free(p);
}

static void tell_pod(const struct sightings *s, const char *uid, const struct seen_pod *p)
{
    s->config.agent(s->config.ctx, uid, p->ns, p->owner, p->shared);
}

static void drop_pod(struct sightings *s, struct sighter *g, const char *uid)
{
    struct seen_pod *p = map_del(&g->pods, uid);
    if (p)
        tell_pod(s, uid, p);
    pod_free(p);
}

static void set_group(struct sightings *s, struct sighter *g, const char *uid, struct seen_group *now)
{
    free(now ? map_set(&g->groups, uid, now) : map_del(&g->groups, uid));
    s->config.ranks(s->config.ctx, uid);
}

// Its maps are empty before anybody is told, who asks again.
static void forget_all(struct sightings *s, struct sighter *g)
{
    struct map pods = g->pods, groups = g->groups;
    const char *uid;
    void *value;
    g->pods = g->groups = MAP_INIT;
    for (size_t i = 0; map_next(&pods, &i, &uid, &value);) {
        tell_pod(s, uid, value);
        pod_free(value);
    }
    for (size_t i = 0; map_next(&groups, &i, &uid, &value);) {
        s->config.ranks(s->config.ctx, uid);
        free(value);
    }
    map_done(&pods);
    map_done(&groups);
}

int sightings_join(struct sightings *s, const char *name, struct sighter **ret, struct err *err)
{
    if (s->n_sighters == SIGHTINGS_REPLICAS_MAX)
        return err_set(err, ERR_LIMIT, "%d replicas are connected, which is the limit", SIGHTINGS_REPLICAS_MAX);
    struct sighter *g = *ret = xcalloc(1, sizeof *g);
    g->name = xstrdup(name);
    g->since_ms = g->heard_ms = mono_ms(s);
    list_append(&s->sighters, &g->link);
    s->n_sighters++;
    return 0;
}

void sightings_leave(struct sightings *s, struct sighter *g)
{
    list_remove(&g->link);
    s->n_sighters--;
    forget_all(s, g);
    free(g->name);
    free(g);
}

void sightings_alive(struct sightings *s, struct sighter *g)
{
    g->heard_ms = mono_ms(s);
}

// A record: read as a whole, then taken

struct said_pod {
    const char *uid, *ns, *owner;
    bool shared, gone;
};

struct said_group {
    const char *uid;
    struct range *ranges;
    size_t n;
};

struct said {
    bool whole;
    struct said_pod *pods;
    struct said_group *groups;
    size_t n_pods, n_groups;
};

static bool is_true(const struct json *v)
{
    return v && v->type == JSON_BOOL && v->len == 4;
}

static bool is_uid(const char *uid)
{
    return !str_empty(uid) && strlen(uid) <= REPORT_GROUP_MAX;
}

static bool read_pod(const struct json *v, struct arena *a, struct said_pod *ret)
{
    *ret = (struct said_pod){
        .uid = json_str(json_get(v, "pod"), a),
        .ns = json_str(json_get(v, "namespace"), a),
        .owner = json_str(json_get(v, "owner"), a),
        .shared = is_true(json_get(v, "shared")),
        .gone = is_true(json_get(v, "gone")),
    };
    return is_uid(ret->uid) && (ret->gone || (!str_empty(ret->ns) && !str_empty(ret->owner)));
}

static bool read_number(const struct json *v, int32_t min, int32_t *ret)
{
    int64_t n;
    if (!v || !json_i64(v, &n) || n < min || n > INT32_MAX)
        return false;
    *ret = (int32_t)n;
    return true;
}

static bool read_range(const struct json *v, struct range *ret)
{
    if (v->type != JSON_LIST || json_count(v) != 3)
        return false;
    const struct json *attempt = v->child;
    return read_number(attempt, 1, &ret->attempt) && read_number(attempt->next, 0, &ret->first) &&
           read_number(attempt->next->next, ret->first, &ret->last);
}

static bool read_group(const struct json *v, struct arena *a, struct said_group *ret)
{
    const struct json *ranks = json_get(v, "ranks");
    size_t n = json_count(ranks);
    *ret = (struct said_group){.uid = json_str(json_get(v, "group"), a)};
    if (!is_uid(ret->uid) || !ranks || ranks->type != JSON_LIST || n > SIGHTINGS_RANGES_MAX)
        return false;
    ret->ranges = arena_array(a, n, sizeof *ret->ranges);
    JSON_FOREACH(item, ranks)
        if (!read_range(item, &ret->ranges[ret->n++]))
            return false;
    return true;
}

static bool is_list(const struct json *v)
{
    return !v || v->type == JSON_LIST;
}

static int read_said(const struct json *root, struct arena *a, struct said *ret, struct err *err)
{
    const struct json *pods = json_get(root, "agents"), *groups = json_get(root, "groups");
    *ret = (struct said){.whole = is_true(json_get(root, "whole"))};
    if (root->type != JSON_OBJECT || !is_list(pods) || !is_list(groups))
        return err_set(err, ERR_INVALID, "SIGHTINGS: \"agents\" and \"groups\" must be lists");
    ret->pods = arena_array(a, json_count(pods), sizeof *ret->pods);
    ret->groups = arena_array(a, json_count(groups), sizeof *ret->groups);
    JSON_FOREACH(item, pods)
        if (!read_pod(item, a, &ret->pods[ret->n_pods++]))
            return err_set(err, ERR_INVALID,
                           "SIGHTINGS: an agent has \"pod\", and \"namespace\" and \"owner\", or "
                           "\"gone\"");
    JSON_FOREACH(item, groups)
        if (!read_group(item, a, &ret->groups[ret->n_groups++]))
            return err_set(err, ERR_INVALID,
                           "SIGHTINGS: a group has \"group\" and \"ranks\", a list of at most %d "
                           "[attempt, first, last]",
                           SIGHTINGS_RANGES_MAX);
    return 0;
}

static void take_pod(struct sightings *s, struct sighter *g, const struct said_pod *said)
{
    if (said->gone || map_has(&g->pods, said->uid)) {
        if (said->gone)
            drop_pod(s, g, said->uid);
        return;
    }
    struct seen_pod *p = xcalloc(1, sizeof *p);
    *p = (struct seen_pod){xstrdup(said->ns), xstrdup(said->owner), said->shared};
    map_set(&g->pods, said->uid, p);
    tell_pod(s, said->uid, p);
}

static void take_group(struct sightings *s, struct sighter *g, const struct said_group *said)
{
    struct seen_group *now = NULL;
    if (said->n) {
        now = xmalloc(sizeof *now + said->n * sizeof *now->ranges);
        now->n = said->n;
        memcpy(now->ranges, said->ranges, said->n * sizeof *now->ranges);
    }
    set_group(s, g, said->uid, now);
}

static int check_room(const struct sighter *g, const struct said *said, struct err *err)
{
    size_t pods = said->whole ? 0 : g->pods.used, groups = said->whole ? 0 : g->groups.used;
    if (pods + said->n_pods > SIGHTINGS_MAX || groups + said->n_groups > SIGHTINGS_MAX)
        return err_set(err, ERR_LIMIT, "SIGHTINGS: more than %d pods or groups", SIGHTINGS_MAX);
    return 0;
}

int sightings_hear(struct sightings *s, struct sighter *g, const char *body, size_t len, struct err *err)
{
    struct arena a = ARENA_INIT;
    struct json *root;
    struct said said;
    sightings_alive(s, g);
    if (len > SIGHTINGS_BODY_MAX)
        return err_set(err, ERR_LIMIT, "SIGHTINGS: more than %d bytes", SIGHTINGS_BODY_MAX);
    int r = json_parse(body, len, NULL, &a, &root, err);
    if (r < 0)
        err_wrap(err, "SIGHTINGS");
    if (r == 0)
        r = read_said(root, &a, &said, err);
    if (r == 0)
        r = check_room(g, &said, err);
    if (r == 0 && said.whole)
        forget_all(s, g);
    for (size_t i = 0; r == 0 && i < said.n_pods; i++)
        take_pod(s, g, &said.pods[i]);
    for (size_t i = 0; r == 0 && i < said.n_groups; i++)
        take_group(s, g, &said.groups[i]);
    arena_done(&a);
    return r;
}

// What all of them say

const char *sightings_agent(const struct sightings *s, const char *pod_uid)
{
    LIST_FOREACH(l, &s->sighters) {
        const struct sighter *g = CONTAINER_OF(l, struct sighter, link);
        if (map_has(&g->pods, pod_uid))
            return g->name;
    }
    return NULL;
}

struct comparison {
    const struct sighter *sighter;
    bool lacks;
};

static void compare(void *ctx, const char *pod_uid)
{
    struct comparison *c = ctx;
    c->lacks = c->lacks || !map_has(&c->sighter->pods, pod_uid);
}

const char *sightings_sees_more(const struct sightings *s, const struct agents *a)
{
    LIST_FOREACH(l, &s->sighters) {
        struct comparison c = {.sighter = CONTAINER_OF(l, struct sighter, link)};
        if (c.sighter->pods.used <= agents_count(a))
            continue;
        agents_each(a, compare, &c);
        if (!c.lacks)
            return c.sighter->name;
    }
    return NULL;
}

static void add_range(const struct range *r, int32_t *members, size_t n)
{
    for (size_t rank = (size_t)r->first; rank <= (size_t)r->last && rank < n; rank++)
        if (!members[rank])
            members[rank] = r->attempt;
}

void sightings_members(const struct sightings *s, const char *group_uid, int32_t *members, size_t n)
{
    LIST_FOREACH(l, &s->sighters) {
        const struct seen_group *g = map_get(&CONTAINER_OF(l, struct sighter, link)->groups, group_uid);
        for (size_t i = 0; g && i < g->n; i++)
            add_range(&g->ranges[i], members, n);
    }
}

size_t sightings_witnesses(const struct sightings *s, struct agent_witness *ret, size_t max)
{
    int64_t to_wall = clock_wall_ms(s->config.clock) - mono_ms(s);
    size_t n = 0;
    LIST_FOREACH(l, &s->sighters) {
        const struct sighter *g = CONTAINER_OF(l, struct sighter, link);
        if (n == max)
            break;
        ret[n++] = (struct agent_witness){g->since_ms + to_wall, g->heard_ms + to_wall};
    }
    return n;
}
