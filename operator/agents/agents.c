// SPDX-License-Identifier: Apache-2.0
#include "operator/agents/agents.h"

#include "common/base/json_writer.h"
#include "common/base/list.h"
#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/agents/devices.h"
#include "operator/agents/reported_group.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDENTITY_BYTES = 256 };

struct reported_pod { // a pod with an agent
    char *uid;
    struct connected_agent *agent; // NULL = it is not connected
    int64_t changed_ms, heard_ms, ending_ms;
    struct reported_group *groups[AGENTS_GROUPS_MAX];
    size_t n_groups;
    size_t text; // bytes of texts that it may still keep
    struct devices devices;
};

struct connected_agent {
    struct reported_pod *pod; // NULL = it was replaced, or its pod is gone
    struct arena memory;      // contains the strings of `id`
    struct agent_identity id;
    agent_send_fn send;
    void *owner;
    struct list replaced; // link in agents.replaced
    struct list joined;   // link in agents.joined, while it has its pod
};

struct agents {
    struct agents_config config;
    struct map pods;     // key: UID of a pod
    struct map listened; // UIDs of groups with listeners to their output
    struct map running;  // key: UID of a group; value: in how many pods it may run
    struct list replaced;
    struct list joined; // connected agents, in the order in which they came
    size_t n_pods, n_connected, n_agents;
};

struct agents *agents_new(const struct agents_config *c)
{
    struct agents *a = xcalloc(1, sizeof *a);
    a->config = *c;
    list_init(&a->replaced);
    list_init(&a->joined);
    return a;
}

static int64_t wall_ms(const struct agents *a)
{
    return clock_wall_ms(a->config.clock);
}

static bool runs(const struct reported_group *k)
{
    return k && k->state != AGENT_IDLE;
}

// Counts the pods of a group, so that nobody has to ask all pods.
static void count(struct agents *a, const char *group, bool before, bool now)
{
    uintptr_t n = (uintptr_t)map_get(&a->running, group) + now - before;
    if (n && before != now)
        map_set(&a->running, group, (void *)n);
    else if (before != now)
        map_del(&a->running, group);
}

static void pod_forget(struct agents *a, struct reported_pod *p, size_t i)
{
    count(a, p->groups[i]->group, runs(p->groups[i]), false);
    reported_group_free(p->groups[i]);
    p->groups[i] = p->groups[--p->n_groups];
}

static void pod_free(struct agents *a, struct reported_pod *p)
{
    while (p->n_groups)
        pod_forget(a, p, p->n_groups - 1);
    devices_done(&p->devices);
    free(p->uid);
    free(p);
}

void agents_free(struct agents *a)
{
    if (!a)
        return;
    assert(a->n_agents == 0);
    void *p;
    for (size_t i = 0; map_next(&a->pods, &i, NULL, &p);)
        pod_free(a, p);
    map_done(&a->pods);
    map_done(&a->running);
    map_done(&a->listened);
    free(a);
}

static struct reported_pod *pod_need(struct agents *a, const char *uid, struct err *err)
{
    struct reported_pod *p = map_get(&a->pods, uid);
    if (p)
        return p;
    if (a->n_pods == AGENTS_MAX) {
        err_set(err, ERR_LIMIT, "agents of %d pods are connected, which is the limit", AGENTS_MAX);
        return NULL;
    }
    p = xcalloc(1, sizeof *p);
    p->uid = xstrdup(uid);
    p->text = AGENTS_TEXT_MAX;
    map_set(&a->pods, uid, p);
    a->n_pods++;
    return p;
}

static struct reported_group *group_find(const struct reported_pod *p, const char *group)
{
    for (size_t i = 0; i < p->n_groups; i++)
        if (str_eq(p->groups[i]->group, group))
            return p->groups[i];
    return NULL;
}

static struct reported_group *group_need(struct agents *a, struct reported_pod *p, const char *group, struct err *err)
{
    struct reported_group *k = group_find(p, group);
    if (k)
        return k;
    for (size_t i = 0; i < p->n_groups && p->n_groups == AGENTS_GROUPS_MAX; i++)
        if (reported_group_idle(p->groups[i]))
            pod_forget(a, p, i);
    if (p->n_groups == AGENTS_GROUPS_MAX) {
        err_set(err, ERR_LIMIT, "more than %d groups in one pod", AGENTS_GROUPS_MAX);
        return NULL;
    }
    return p->groups[p->n_groups++] = reported_group_new(group, &p->text);
}

static void tell_presence(const struct agents *a, const struct reported_pod *p)
{
    if (a->config.presence)
        a->config.presence(a->config.ctx, p->uid);
}

// Everything from this connection is ignored from now on.
static void detach(struct agents *a, struct connected_agent *g)
{
    struct reported_pod *p = g->pod;
    g->pod = NULL;
    p->agent = NULL;
    list_remove(&g->joined);
    p->changed_ms = p->heard_ms;
    for (size_t i = 0; i < p->n_groups; i++)
        reported_group_lost(p->groups[i]);
    a->n_connected--;
    tell_presence(a, p);
}

static void expel(struct agents *a, struct connected_agent *g)
{
    detach(a, g);
    list_append(&a->replaced, &g->replaced);
}

static void tell_changed(const struct agents *a, const struct connected_agent *g, const char *group_uid)
{
    if (!g->id.of_placementgroup && a->config.changed)
        a->config.changed(a->config.ctx, g->id.ns, g->id.group);
    if (g->id.of_placementgroup && a->config.placementgroup_changed)
        a->config.placementgroup_changed(a->config.ctx, g->id.ns, g->id.group, group_uid);
}

// Returns true if this agent may report this group.
static bool may_report(const struct agents *a, const struct agent_identity *id, const char *group)
{
    bool own = !id->group_uid || str_eq(id->group_uid, group);
    return own && id->of_placementgroup
               ? a->config.may_report && a->config.may_report(a->config.ctx, id->ns, id->group, group)
               : own;
}

static void tell_exits(const struct agents *a, const struct agent_identity *id, const struct decoded_report *r)
{
    if (!may_report(a, id, r->group))
        return;
    for (size_t i = 0; i < r->n_processes && a->config.exited; i++) {
        const struct agent_process *p = &r->processes[i];
        if (p->state == AGENT_PROCESS_EXITED)
            a->config.exited(a->config.ctx, r->group, (uint32_t)p->attempt, (uint32_t)p->rank, p->exit_code,
                             p->last_lines);
    }
}

static bool has_report(const struct decoded_report *reports, size_t n, const char *group)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(reports[i].group, group))
            return true;
    return false;
}

static int learn(struct agents *a, struct reported_pod *p, const struct agent_identity *id,
                 const struct decoded_report *r, struct err *err)
{
    if (id->group_uid && !str_eq(id->group_uid, r->group))
        return 0;
    struct reported_group *k = group_need(a, p, r->group, err);
    bool before = runs(k);
    if (!k)
        return err->code;
    int e = reported_group_update(k, r, wall_ms(a), err);
    count(a, r->group, before, runs(k));
    if (e < 0)
        return e;
    tell_exits(a, id, r);
    return 0;
}

static int learn_hello(struct agents *a, struct reported_pod *p, const struct agent_identity *id,
                       const struct decoded_report *reports, size_t n, struct err *err)
{
    for (size_t i = p->n_groups; i-- > 0;)
        if (!has_report(reports, n, p->groups[i]->group))
            pod_forget(a, p, i);
    for (size_t i = 0; i < n; i++)
        if (learn(a, p, id, &reports[i], err) < 0)
            return err->code;
    return 0;
}

static struct connected_agent *agent_open(struct agents *a, struct reported_pod *p, const struct agent_identity *id)
{
    struct connected_agent *g = xcalloc(1, sizeof *g);
    arena_init(&g->memory, IDENTITY_BYTES);
    g->id = (struct agent_identity){.ns = arena_strdup(&g->memory, id->ns),
                                    .group = arena_strdup(&g->memory, id->group),
                                    .of_placementgroup = id->of_placementgroup,
                                    .pod = arena_strdup(&g->memory, id->pod),
                                    .pod_uid = p->uid,
                                    .node = arena_strdup(&g->memory, id->node),
                                    .group_uid = arena_strdup(&g->memory, id->group_uid)};
    g->pod = p;
    list_init(&g->replaced);
    list_init(&g->joined);
    list_append(&a->joined, &g->joined);
    p->agent = g;
    p->changed_ms = p->heard_ms = wall_ms(a);
    a->n_agents++;
    a->n_connected++;
    tell_presence(a, p);
    return g;
}

// An agent is told about its own group. In a pod of a PlacementGroup, it is told about all groups, and ignores those
// that it does not have.
static void tell_listened(const struct connected_agent *g, const char *group_uid, bool on)
{
    struct arena a = ARENA_INIT;
    struct err ignored = ERR_INIT;
    if (g->id.group_uid && !str_eq(g->id.group_uid, group_uid))
        return;
    const char *body = json_print(&a, on ? "{'group':%s,'listen':true}" : "{'group':%s,'listen':false}", group_uid);
    // If the queue is full, the connection is closed.
    (void)g->send(g->owner, RECORD_OUTPUT, body, strlen(body), &ignored);
    arena_done(&a);
}

void agents_welcomed(const struct agents *a, const struct connected_agent *g)
{
    const char *uid;
    void *yes;
    for (size_t i = 0; map_next(&a->listened, &i, &uid, &yes);)
        tell_listened(g, uid, true);
}

void agents_listen(struct agents *a, const char *group_uid, bool on)
{
    void *p;
    if (map_has(&a->listened, group_uid) == on)
        return;
    if (on)
        map_set(&a->listened, group_uid, a);
    else
        map_del(&a->listened, group_uid);
    for (size_t i = 0; map_next(&a->pods, &i, NULL, &p);) {
        const struct reported_pod *pod = p;
        if (pod->agent)
            tell_listened(pod->agent, group_uid, on);
    }
}

// Reports the GPUs of the ranks that this agent may report.
static void tell_gpus(const struct agents *a, const struct connected_agent *g)
{
    const struct devices *d = &g->pod->devices;
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < d->n && a->config.gpus; i++)
        for (size_t k = 0; k < d->gpus[i].n_ranks; k++) {
            const struct gpu_rank *r = &d->gpus[i].ranks[k];
            if (may_report(a, &g->id, r->group))
                a->config.gpus(a->config.ctx, r->group, (uint32_t)r->rank,
                               devices_of_rank(d, r->group, r->rank, &arena));
        }
    arena_done(&arena);
}

// Takes the GPUs of a HELLO or a HEARTBEAT.
static int learn_gpus(struct agents *a, struct connected_agent *g, const char *body, size_t len, struct err *err)
{
    bool changed;
    int r = devices_learn(&g->pod->devices, body, len, &changed, err);
    if (r == 0 && len > strlen("{}"))
        tell_gpus(a, g);
    if (changed)
        tell_changed(a, g, NULL);
    return r;
}

int agents_join(struct agents *a, const struct agent_identity *id, const char *hello, size_t len, agent_send_fn send,
                void *owner, struct connected_agent **ret, struct err *err)
{
    struct arena arena = ARENA_INIT;
    struct decoded_report *reports;
    struct reported_pod *p = NULL;
    size_t n;
    if (report_decode_hello(hello, len, AGENTS_GROUPS_MAX, &arena, &reports, &n, err) == 0)
        p = pod_need(a, id->pod_uid, err);
    if (p && p->agent)
        expel(a, p->agent);
    if (p && learn_hello(a, p, id, reports, n, err) == 0) {
        *ret = agent_open(a, p, id);
        (*ret)->send = send;
        (*ret)->owner = owner;
        tell_changed(a, *ret, NULL);
        if (learn_gpus(a, *ret, hello, len, err) < 0)
            agents_leave(a, TAKE_PTR(*ret));
    }
    arena_done(&arena);
    return err->code;
}

void *agents_replaced(struct agents *a)
{
    struct list *l = list_pop(&a->replaced);
    return l ? CONTAINER_OF(l, struct connected_agent, replaced)->owner : NULL;
}

void agents_leave(struct agents *a, struct connected_agent *g)
{
    if (g->pod) {
        detach(a, g);
        tell_changed(a, g, NULL);
    }
    list_remove(&g->replaced);
    arena_done(&g->memory);
    free(g);
    a->n_agents--;
}

// The agent could not read a command, so the group is not known.
static void refused_unread(struct agents *a, struct reported_pod *p, const struct decoded_report *r)
{
    struct err never = ERR_INIT;
    for (size_t i = 0; i < p->n_groups; i++)
        reported_group_update(p->groups[i], r, wall_ms(a), &never);
}

static int on_report(struct agents *a, struct connected_agent *g, const struct record *rec, struct err *err)
{
    struct arena arena = ARENA_INIT;
    struct decoded_report report;
    int r = report_decode(rec->h.type, rec->body, rec->len, &arena, &report, err);
    if (r == 0 && report.type == RECORD_REFUSED && report.command == RECORD_KILL) {
        if (report.group && a->config.kill_refused && may_report(a, &g->id, report.group))
            a->config.kill_refused(a->config.ctx, report.group, report.rank, report.error);
        arena_done(&arena);
        return 0;
    }
    if (r == 0 && report.group)
        r = learn(a, g->pod, &g->id, &report, err);
    else if (r == 0)
        refused_unread(a, g->pod, &report);
    if (r == 0)
        tell_changed(a, g, report.group);
    arena_done(&arena);
    return r;
}

// Takes lines of a group that this agent may report, if somebody listens. Other lines are late, or not allowed.
static int on_output(struct agents *a, const struct connected_agent *g, const struct record *rec, struct err *err)
{
    struct arena arena = ARENA_INIT;
    struct printed printed;
    int r = report_decode_output(rec->body, rec->len, &arena, &printed, err);
    if (r == 0 && may_report(a, &g->id, printed.group) && a->config.printed && map_has(&a->listened, printed.group)) {
        for (size_t i = 0; i < printed.n; i++)
            a->config.printed(a->config.ctx, printed.group, printed.lines[i].rank, printed.lines[i].text,
                              strlen(printed.lines[i].text));
        if (printed.dropped)
            a->config.printed(a->config.ctx, printed.group, 0, NULL, printed.dropped);
    }
    arena_done(&arena);
    return r;
}

static void on_goodbye(struct agents *a, struct connected_agent *g)
{
    if (g->pod->ending_ms)
        return;
    g->pod->ending_ms = wall_ms(a);
    tell_changed(a, g, NULL);
}

int agents_record(struct agents *a, struct connected_agent *g, const struct record *rec, struct err *err)
{
    if (!g->pod)
        return 0;
    g->pod->heard_ms = wall_ms(a);
    switch (rec->h.type) {
    case RECORD_HEARTBEAT:
        return learn_gpus(a, g, rec->body, rec->len, err);
    case RECORD_OUTPUT:
        return on_output(a, g, rec, err);
    case RECORD_GOODBYE:
        on_goodbye(a, g);
        return 0;
    default:
        if (!report_type(rec->h.type))
            return err_set(err, ERR_PROTO, "an agent must not send %s records", record_type_name(rec->h.type));
        return on_report(a, g, rec, err);
    }
}

void agents_pod_gone(struct agents *a, const char *pod_uid)
{
    struct reported_pod *p = map_get(&a->pods, pod_uid);
    if (!p)
        return;
    if (p->agent)
        expel(a, p->agent);
    map_del(&a->pods, pod_uid);
    a->n_pods--;
    pod_free(a, p);
}

void agents_clock_moved(struct agents *a, int64_t ms)
{
    void *value;
    for (size_t i = 0; map_next(&a->pods, &i, NULL, &value);) {
        struct reported_pod *p = value;
        p->changed_ms += p->changed_ms ? ms : 0;
        p->heard_ms += p->heard_ms ? ms : 0;
        p->ending_ms += p->ending_ms ? ms : 0;
        for (size_t k = 0; k < p->n_groups; k++)
            reported_group_clock_moved(p->groups[k], ms);
    }
}

void agents_facts(const struct agents *a, const char *pod_uid, const char *group_uid, struct arena *arena,
                  struct agent_facts *ret)
{
    const struct reported_pod *p = map_get(&a->pods, pod_uid);
    const struct reported_group *k = p ? group_find(p, group_uid) : NULL;
    *ret = (struct agent_facts){0};
    if (k)
        reported_group_facts(k, arena, ret);
    if (p)
        ret->lost = devices_lost(&p->devices, group_uid, arena);
    ret->connected = p && p->agent;
    ret->changed_ms = p ? p->changed_ms : 0;
    ret->ending_ms = p ? p->ending_ms : 0;
}

bool agents_gpu_lost(const struct agents *a, const char *pod_uid)
{
    const struct reported_pod *p = map_get(&a->pods, pod_uid);
    return p && devices_any_lost(&p->devices);
}

int agents_command(struct agents *a, const char *pod_uid, const char *group_uid, int32_t attempt, uint8_t type,
                   const char *body, struct err *err)
{
    struct reported_pod *p = map_get(&a->pods, pod_uid);
    if (!p || !p->agent)
        return err_set(err, ERR_UNAVAILABLE, "the agent of the pod with UID %s is not connected here", pod_uid);
    struct reported_group *k = group_need(a, p, group_uid, err);
    if (!k || p->agent->send(p->agent->owner, type, body, strlen(body), err) < 0)
        return err->code;
    reported_group_sent(k, type, attempt);
    return 0;
}

char *agents_kill_body(const char *group_uid, uint32_t attempt, uint32_t rank, struct arena *a)
{
    return json_print(a, "{'group':%s,'attempt':%" PRId64 ",'rank':%" PRId64 "}", group_uid, (int64_t)attempt,
                      (int64_t)rank);
}

int agents_kill(struct agents *a, const char *pod_uid, const char *group_uid, uint32_t attempt, uint32_t rank,
                struct err *err)
{
    const struct reported_pod *p = map_get(&a->pods, pod_uid);
    struct arena arena = ARENA_INIT;
    if (!p || !p->agent)
        return err_set(err, ERR_UNAVAILABLE, "the agent of its pod is not connected to this replica; try again");
    const char *order = agents_kill_body(group_uid, attempt, rank, &arena);
    int r = p->agent->send(p->agent->owner, RECORD_KILL, order, strlen(order), err);
    arena_done(&arena);
    return r;
}

size_t agents_running(const struct agents *a, const char *group_uid)
{
    return (uintptr_t)map_get(&a->running, group_uid);
}

size_t agents_groups(const struct agents *a, const char *pod_uid, struct arena *arena, struct agent_group **ret)
{
    const struct reported_pod *p = map_get(&a->pods, pod_uid);
    size_t n = p ? p->n_groups : 0;
    *ret = arena_array(arena, n, sizeof **ret);
    for (size_t i = 0; i < n; i++)
        (*ret)[i] =
            (struct agent_group){arena_strdup(arena, p->groups[i]->group), p->groups[i]->state, p->groups[i]->attempt};
    return n;
}

size_t agents_count(const struct agents *a)
{
    return a->n_connected;
}

const struct agent_identity *agents_sight(const struct agents *a, const char *pod_uid)
{
    const struct reported_pod *p = map_get(&a->pods, pod_uid);
    return p && p->agent ? &p->agent->id : NULL;
}

void agents_each(const struct agents *a, void (*fn)(void *ctx, const char *pod_uid), void *ctx)
{
    LIST_FOREACH(l, &a->joined)
        fn(ctx, CONTAINER_OF(l, struct connected_agent, joined)->pod->uid);
}

static void put_family(const struct agents *a, int family, struct buf *out)
{
    size_t n = 0;
    char labels[512];
    devices_family(family, out);
    LIST_FOREACH(l, &a->joined) {
        const struct connected_agent *g = CONTAINER_OF(l, struct connected_agent, joined);
        if ((n += g->pod->devices.n) > AGENTS_SERIES_MAX)
            break;
        snprintf(labels, sizeof labels, "namespace=\"%s\",pod=\"%s\",Hostname=\"%s\"", g->id.ns,
                 g->id.pod ? g->id.pod : "", g->id.node ? g->id.node : "");
        devices_series(&g->pod->devices, family, labels, out);
    }
}

void agents_metrics(const struct agents *a, struct buf *out)
{
    bool any = false;
    LIST_FOREACH(l, &a->joined)
        any = any || CONTAINER_OF(l, struct connected_agent, joined)->pod->devices.n;
    for (int i = 0; i < DEVICES_FAMILIES && any; i++)
        put_family(a, i, out);
}

size_t agents_longest_connected(const struct agents *a, struct connected_peer *ret, size_t max)
{
    size_t n = 0;
    LIST_FOREACH(l, &a->joined) {
        const struct reported_pod *p = CONTAINER_OF(l, struct connected_agent, joined)->pod;
        if (n == max)
            break;
        ret[n++] = (struct connected_peer){p->changed_ms, p->heard_ms};
    }
    return n;
}
