// SPDX-License-Identifier: Apache-2.0
#include "operator/agents/replica_reports.h"

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

struct rank_range {
    int32_t attempt, first, last;
};

struct seen_group {
    size_t n;
    struct rank_range ranges[];
};

struct seen_pod {
    char *ns, *owner;
    bool of_placementgroup;
};

struct reporting_replica {
    struct list link;
    char *name;
    int64_t since_ms, heard_ms; // monotonic
    struct map pods, groups;    // keys: UIDs
};

struct replica_reports {
    struct replica_reports_config config;
    struct list replicas;
    size_t n_replicas;
};

struct replica_reports *replica_reports_new(const struct replica_reports_config *config)
{
    struct replica_reports *s = xcalloc(1, sizeof *s);
    s->config = *config;
    list_init(&s->replicas);
    return s;
}

void replica_reports_free(struct replica_reports *s)
{
    if (!s)
        return;
    assert(s->n_replicas == 0);
    free(s);
}

static int64_t mono_ms(const struct replica_reports *s)
{
    return clock_mono_ms(s->config.clock);
}

// The report of one replica

static void pod_free(struct seen_pod *p)
{
    if (!p)
        return;
    free(p->ns);
    free(p->owner);
    free(p);
}

static void tell_pod(const struct replica_reports *s, const char *uid, const struct seen_pod *p)
{
    s->config.agent(s->config.ctx, uid, p->ns, p->owner, p->of_placementgroup);
}

static void drop_pod(struct replica_reports *s, struct reporting_replica *g, const char *uid)
{
    struct seen_pod *p = map_del(&g->pods, uid);
    if (p)
        tell_pod(s, uid, p);
    pod_free(p);
}

static void set_group(struct replica_reports *s, struct reporting_replica *g, const char *uid, struct seen_group *now)
{
    free(now ? map_set(&g->groups, uid, now) : map_del(&g->groups, uid));
    s->config.ranks(s->config.ctx, uid);
}

// The maps are empty before the callbacks run, because these ask again.
static void forget_all(struct replica_reports *s, struct reporting_replica *g)
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

int replica_reports_join(struct replica_reports *s, const char *name, struct reporting_replica **ret, struct err *err)
{
    if (s->n_replicas == REPLICA_REPORTS_MAX)
        return err_set(err, ERR_LIMIT, "%d replicas are connected, which is the limit", REPLICA_REPORTS_MAX);
    struct reporting_replica *g = *ret = xcalloc(1, sizeof *g);
    g->name = xstrdup(name);
    g->since_ms = g->heard_ms = mono_ms(s);
    list_append(&s->replicas, &g->link);
    s->n_replicas++;
    if (s->config.joined)
        s->config.joined(s->config.ctx);
    return 0;
}

void replica_reports_leave(struct replica_reports *s, struct reporting_replica *g)
{
    list_remove(&g->link);
    s->n_replicas--;
    forget_all(s, g);
    free(g->name);
    free(g);
}

void replica_reports_alive(struct replica_reports *s, struct reporting_replica *g)
{
    g->heard_ms = mono_ms(s);
}

// A record is checked as a whole, then taken

struct pod_report {
    const char *uid, *ns, *owner;
    bool of_placementgroup, gone;
};

struct group_report {
    const char *uid;
    struct rank_range *ranges;
    size_t n;
};

static bool is_uid(const char *uid)
{
    return !str_empty(uid) && strlen(uid) <= REPORT_GROUP_MAX;
}

static bool read_pod(const struct json *v, struct arena *a, struct pod_report *ret)
{
    *ret = (struct pod_report){
        .uid = json_str(json_get(v, "pod"), a),
        .ns = json_str(json_get(v, "namespace"), a),
        .owner = json_str(json_get(v, "owner"), a),
        .of_placementgroup = json_is_true(json_get(v, "shared")),
        .gone = json_is_true(json_get(v, "gone")),
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

static bool read_range(const struct json *v, struct rank_range *ret)
{
    if (v->type != JSON_LIST || json_count(v) != 3)
        return false;
    const struct json *attempt = v->child;
    return read_number(attempt, 1, &ret->attempt) && read_number(attempt->next, 0, &ret->first) &&
           read_number(attempt->next->next, ret->first, &ret->last);
}

static bool read_group(const struct json *v, struct arena *a, struct group_report *ret)
{
    const struct json *ranks = json_get(v, "ranks");
    size_t n = json_count(ranks);
    *ret = (struct group_report){.uid = json_str(json_get(v, "group"), a)};
    if (!is_uid(ret->uid) || !ranks || ranks->type != JSON_LIST || n > REPLICA_REPORT_RANGES_MAX)
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

static int check(const struct reporting_replica *g, const struct json *root, struct arena *a, struct err *err)
{
    const struct json *pods = json_get(root, "agents"), *groups = json_get(root, "groups");
    struct pod_report pod;
    struct group_report group;
    if (root->type != JSON_OBJECT || !is_list(pods) || !is_list(groups))
        return err_set(err, ERR_INVALID, "REPORT: \"agents\" and \"groups\" must be lists");
    JSON_FOREACH(item, pods)
        if (!read_pod(item, a, &pod))
            return err_set(err, ERR_INVALID,
                           "REPORT: an agent has \"pod\", and \"namespace\" and \"owner\", or \"gone\"");
    JSON_FOREACH(item, groups)
        if (!read_group(item, a, &group))
            return err_set(err, ERR_INVALID,
                           "REPORT: a group has \"group\" and \"ranks\", a list of at most %d "
                           "[attempt, first, last]",
                           REPLICA_REPORT_RANGES_MAX);
    bool whole = json_is_true(json_get(root, "whole"));
    if ((whole ? 0 : g->pods.used) + json_count(pods) > REPLICA_REPORT_ITEMS_MAX ||
        (whole ? 0 : g->groups.used) + json_count(groups) > REPLICA_REPORT_ITEMS_MAX)
        return err_set(err, ERR_LIMIT, "REPORT: more than %d pods or groups", REPLICA_REPORT_ITEMS_MAX);
    return 0;
}

static void take_pod(struct replica_reports *s, struct reporting_replica *g, const struct pod_report *report)
{
    if (report->gone || map_has(&g->pods, report->uid)) {
        if (report->gone)
            drop_pod(s, g, report->uid);
        return;
    }
    struct seen_pod *p = xcalloc(1, sizeof *p);
    *p = (struct seen_pod){xstrdup(report->ns), xstrdup(report->owner), report->of_placementgroup};
    map_set(&g->pods, report->uid, p);
    tell_pod(s, report->uid, p);
}

static void take_group(struct replica_reports *s, struct reporting_replica *g, const struct group_report *report)
{
    struct seen_group *now = NULL;
    if (report->n) {
        now = xmalloc(sizeof *now + report->n * sizeof *now->ranges);
        now->n = report->n;
        memcpy(now->ranges, report->ranges, report->n * sizeof *now->ranges);
    }
    set_group(s, g, report->uid, now);
}

static void take(struct replica_reports *s, struct reporting_replica *g, const struct json *root, struct arena *a)
{
    struct pod_report pod;
    struct group_report group;
    if (json_is_true(json_get(root, "whole")))
        forget_all(s, g);
    JSON_FOREACH(item, json_get(root, "agents"))
        if (read_pod(item, a, &pod))
            take_pod(s, g, &pod);
    JSON_FOREACH(item, json_get(root, "groups"))
        if (read_group(item, a, &group))
            take_group(s, g, &group);
}

int replica_reports_take(struct replica_reports *s, struct reporting_replica *g, const char *body, size_t len,
                         struct err *err)
{
    struct arena a = ARENA_INIT;
    struct json *root;
    replica_reports_alive(s, g);
    if (len > REPLICA_REPORT_BODY_MAX)
        return err_set(err, ERR_LIMIT, "REPORT: more than %d bytes", REPLICA_REPORT_BODY_MAX);
    int r = json_parse(body, len, NULL, &a, &root, err);
    if (r < 0)
        err_wrap(err, "REPORT");
    if (r == 0)
        r = check(g, root, &a, err);
    if (r == 0)
        take(s, g, root, &a);
    arena_done(&a);
    return r;
}

// The reports of all replicas

const char *replica_reports_agent(const struct replica_reports *s, const char *pod_uid)
{
    LIST_FOREACH(l, &s->replicas) {
        const struct reporting_replica *g = CONTAINER_OF(l, struct reporting_replica, link);
        if (map_has(&g->pods, pod_uid))
            return g->name;
    }
    return NULL;
}

struct comparison {
    const struct reporting_replica *replica;
    bool lacks;
};

static void compare(void *ctx, const char *pod_uid)
{
    struct comparison *c = ctx;
    c->lacks = c->lacks || !map_has(&c->replica->pods, pod_uid);
}

const char *replica_reports_sees_more(const struct replica_reports *s, const struct agents *a)
{
    LIST_FOREACH(l, &s->replicas) {
        struct comparison c = {.replica = CONTAINER_OF(l, struct reporting_replica, link)};
        if (c.replica->pods.used <= agents_count(a))
            continue;
        agents_each(a, compare, &c);
        if (!c.lacks)
            return c.replica->name;
    }
    return NULL;
}

static void add_range(const struct rank_range *r, int32_t *members, size_t n)
{
    for (size_t rank = (size_t)r->first; rank <= (size_t)r->last && rank < n; rank++)
        if (!members[rank])
            members[rank] = r->attempt;
}

void replica_reports_members(const struct replica_reports *s, const char *group_uid, int32_t *members, size_t n)
{
    LIST_FOREACH(l, &s->replicas) {
        const struct seen_group *g = map_get(&CONTAINER_OF(l, struct reporting_replica, link)->groups, group_uid);
        for (size_t i = 0; g && i < g->n; i++)
            add_range(&g->ranges[i], members, n);
    }
}

size_t replica_reports_connected(const struct replica_reports *s, struct connected_peer *ret, size_t max)
{
    int64_t to_wall = clock_wall_ms(s->config.clock) - mono_ms(s);
    size_t n = 0;
    LIST_FOREACH(l, &s->replicas) {
        const struct reporting_replica *g = CONTAINER_OF(l, struct reporting_replica, link);
        if (n == max)
            break;
        ret[n++] = (struct connected_peer){g->since_ms + to_wall, g->heard_ms + to_wall};
    }
    return n;
}
