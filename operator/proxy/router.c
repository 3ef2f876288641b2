// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/router.h"

#include "common/base/last_line.h"
#include "operator/proxy/call_end.h"
#include "operator/proxy/call_queue.h"
#include "operator/proxy/group_change.h"
#include "operator/proxy/job.h"
#include "operator/proxy/kill.h"
#include "operator/proxy/output.h"
#include "operator/proxy/place_answer.h"
#include "operator/proxy/result.h"
#include "operator/proxy/session.h"
#include "operator/proxy/tenant.h"
#include "operator/proxy/transfer_progress.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_behind(const struct router *r)
{
    return !list_empty(&r->behind) || jobs_wait(r) || quota_is_behind(r->bytes);
}

void router_init(struct router *r, const struct router_config *config)
{
    *r = (struct router){.config = *config, .bytes = quota_new(config->total_bytes, NULL)};
    quota_in_steps(r->bytes);
    r->stats.clock = config->clock;
    r->stats.replica = config->replica;
    if (!r->config.turn_work)
        r->config.turn_work = ROUTER_TURN_WORK;
    if (!r->config.pause_mark) {
        r->config.pause_mark = config->high_mark;
        r->config.resume_mark = config->high_mark / 2;
    }
    list_init(&r->outputs);
    list_init(&r->heard);
    list_init(&r->changes);
    list_init(&r->leaving);
    list_init(&r->stopped);
    list_init(&r->group_changes);
    list_init(&r->begun);
    list_init(&r->kills);
    list_init(&r->behind);
    r->at_once = r->config.turn_work;
    list_init(&r->flowing);
    list_init(&r->charged);
    r->level = TENANT_TURN;
    list_init(&r->with_jobs);
    r->marks = blob_copy("[,]null", 7, NULL);
}

static void free_group(struct group *g)
{
    if (g->bootstrap)
        group_free(g->bootstrap);
    output_group_ends(g);
    group_free(g);
}

void router_done(struct router *r)
{
    void *g;
    size_t i = 0;
    while (!list_empty(&r->leaving))
        router_leave(r, CONTAINER_OF(r->leaving.next, struct member, leaving));
    while (is_behind(r))
        router_turn(r);
    while (map_next(&r->by_uid, &i, NULL, &g))
        free_group(g);
    assert(r->n_calls == 0);
    router_drop_group_changes(r);
    while (!list_empty(&r->charged))
        (void)tenants_next_turn(r);
    map_done(&r->tenants);
    map_done(&r->by_uid);
    map_done(&r->by_key);
    idmap_done(&r->running);
    deadlines_done(&r->deadlines);
    deadlines_done(&r->kill_deadlines);
    free_list_done(&r->calls);
    blob_unref(r->marks);
    quota_unref(r->bytes);
    free(r->parts);
}

// The worker never gets the calls that are still in its queue.
static void note_unsent(struct member *m)
{
    LIST_FOREACH(l, &m->pending)
        call_rank_note_unsent(CONTAINER_OF(l, struct call_rank, pending));
}

static const char *may_have_run(const struct call_rank *rank)
{
    if (rank->call->state == CALL_STREAMING)
        return "its ranks received only a part of its arguments, and it has not run";
    if (!rank->unsent)
        return "it may have run";
    return rank->call->n == 1 ? "the call was not sent to this rank, and has not run"
                              : "other ranks may have run the call; this one has not";
}

struct process_end {
    int exit_code;
    const char *words; // the last line of the process, "" = none
};

// An error with a rank says that the call may have run.
static void fail_call(const struct member *m, struct call_rank *rank)
{
    struct call_failure f;
    call_failure_set(&f, ERR_UNAVAILABLE, "%s while %s() was pending; %s%s%s", m->end, rank->call->req.method,
                     may_have_run(rank), m->words[0] ? "; its last line: " : "", m->words);
    if (!rank->unsent || rank->call->n > 1) {
        f.rank = m->rank;
        f.pod = m->pod;
        f.node = m->node;
        f.exited = m->exited;
        f.exit_code = m->exit_code;
    }
    call_lost(rank, &f);
}

// False: the work is used up, and some of its calls still need their errors.
static bool fail_calls(struct member *m, unsigned *work)
{
    LIST_FOREACH(l, &m->pending) {
        struct call_rank *rank = CONTAINER_OF(l, struct call_rank, pending);
        if (*work == 0)
            return false;
        *work -= MIN(*work, call_work(rank->call));
        fail_call(m, rank);
    }
    list_remove(&m->failing);
    if (m->gone)
        member_free(m);
    return true;
}

static bool members_go_on_failing(struct tenant *t, unsigned *work)
{
    LIST_FOREACH(l, &t->failing)
        if (!fail_calls(CONTAINER_OF(l, struct member, failing), work))
            return false;
    return true;
}

// The process will not answer its calls. `what` says why. If there are thousands of calls, most get
// their errors in later turns.
static void fail_pending(struct router *r, struct member *m, const char *what, const struct process_end *end)
{
    char place[384] = ""; // empty in a local run
    m->gone = m->gone || !list_empty(&m->leaving);
    list_remove(&m->leaving);
    if (m->end) // its end is known already
        return;
    if (m->pod)
        snprintf(place, sizeof place, " (pod %s%s%s)", m->pod, m->node ? " on node " : "", m->node ? m->node : "");
    note_unsent(m);
    m->end = arena_printf(&m->arena, "rank %u of %s%s %s", m->rank, m->group ? m->group->key : "a group", place, what);
    m->words = end ? arena_strdup(&m->arena, end->words) : "";
    m->exited = end != NULL;
    m->exit_code = end ? end->exit_code : 0;
    if (fail_calls(m, &r->at_once))
        return;
    struct tenant *t = CONTAINER_OF(m->pending.next, struct call_rank, pending)->call->tenant;
    list_append(&t->failing, &m->failing);
    tenant_falls_behind(t);
}

static void fail_exited(struct router *r, struct member *m, const struct process_end *end)
{
    char what[48];
    snprintf(what, sizeof what, "exited with code %d", end->exit_code);
    fail_pending(r, m, what, end);
}

// The owner has to close the connection, and tell the worker the reason. Until then, records from the worker do not
// count.
static void expel(struct router *r, struct member *m, const char *what, int code, const char *reason)
{
    group_leave(m);
    peer_close(&m->peer, code, "%s", reason);
    fail_pending(r, m, what, NULL); // frees a member that is gone
}

static void look_again(struct router *r, struct group *g)
{
    struct tenant *t = map_get(&r->tenants, g->ns);
    if (t) // if there is no tenant, nothing waits
        tenant_look_again(t, g);
}

// Sends calls that need not wait any longer. False, here and below: the work is used up, and more is left to do.
static bool release_stale(struct tenant *t, unsigned *work)
{
    while (!list_empty(&t->stale)) {
        struct group *g = CONTAINER_OF(list_pop(&t->stale), struct group, stale);
        if (calls_release(g, work))
            continue;
        tenant_look_again(t, g); // as the last of its namespace
        return false;
    }
    return true;
}

static void expel_outdated(struct router *r, struct group *g, bool all)
{
    LIST_FOREACH(l, &g->members) {
        struct member *m = CONTAINER_OF(l, struct member, of_group);
        if (m->registered && (all || m->attempt < g->oldest))
            expel(r, m, "was ended by a restart of its group", ERR_CONFLICT, "this attempt of the group is over");
    }
}

static void add_group(struct router *r, struct group *g)
{
    g->serial = ++r->last_serial;
    map_set(&r->by_key, g->key, g);
    r->n_group_changes++;
}

static void update_group(struct router *r, struct group *g, const struct group_facts *f)
{
    if (g->world && g->world != f->world)
        expel_outdated(r, g, true);
    group_update(g, f);
    expel_outdated(r, g, false);
    look_again(r, g);
}

void router_group_set(struct router *r, const struct group_facts *f)
{
    struct group *g = map_get(&r->by_uid, f->uid);
    if (!g) {
        g = group_new(f->uid, f->ns, f->name, &r->stats);
        map_set(&r->by_uid, f->uid, g);
        add_group(r, g);
    }
    update_group(r, g, f);
    if (g->bootstrap)
        update_group(r, g->bootstrap, f);
    kills_outdated(g, RECORD_GROUP, g->oldest);
}

static void remove_group(struct router *r, struct group *g)
{
    r->n_group_changes++;
    if (map_get(&r->by_key, g->key) == g) // it may be a new object of the same name
        map_del(&r->by_key, g->key);
    list_remove(&g->stale);
    struct tenant *t = tenant_get(r, g->ns);
    list_append(&t->gone, &g->gone);
    tenant_falls_behind(t);
    tenant_unref(t);
}

void router_group_gone(struct router *r, const char *uid)
{
    struct group *g = map_del(&r->by_uid, uid);
    if (!g)
        return;
    kills_group_ends(g);
    output_group_ends(g);
    if (g->bootstrap)
        remove_group(r, TAKE_PTR(g->bootstrap));
    remove_group(r, g);
}

static bool refuse_all(struct group *g, unsigned *work)
{
    LIST_FOREACH(l, &g->calls) {
        struct call *c = CONTAINER_OF(l, struct call, of_group);
        if (*work == 0)
            return false;
        *work -= MIN(*work, call_work(c));
        call_refuse(c, ERR_GONE, "%s was deleted while %s() was pending", g->key, c->req.method);
    }
    return true;
}

static bool end_gone(struct tenant *t, unsigned *work)
{
    LIST_FOREACH(l, &t->gone) {
        struct group *g = CONTAINER_OF(l, struct group, gone);
        if (!refuse_all(g, work))
            return false;
        LIST_FOREACH(m, &g->members)
            expel(t->router, CONTAINER_OF(m, struct member, of_group), "was deleted", ERR_GONE,
                  "the group was deleted");
        group_free(g);
    }
    return true;
}

static bool time_out(struct tenant *t, unsigned *work)
{
    int64_t now = clock_mono_ms(t->router->config.clock);
    for (struct deadline *first; (first = deadlines_first(&t->deadlines)) && first->at <= now;) {
        struct call *c = CONTAINER_OF(first, struct call, deadline);
        if (*work == 0)
            return false;
        *work -= MIN(*work, call_work(c));
        call_timeout(c);
    }
    return true;
}

// Namespaces take turns, so none waits for more than some calls of each other one. Work that ends calls comes before
// work that sends calls, because it makes room.
static void catch_up(struct router *r)
{
    unsigned left = r->config.turn_work;
    while (left && !list_empty(&r->behind)) {
        struct tenant *t = CONTAINER_OF(list_pop(&r->behind), struct tenant, behind);
        unsigned part = MIN(left, TENANT_PART * t->weight), work = part;
        if (!(members_go_on_failing(t, &work) && sessions_go_on_ending(t, &work) && end_gone(t, &work) &&
              time_out(t, &work) && release_stale(t, &work)))
            tenant_falls_behind(t);
        tenant_unref(t);
        left -= part - work;
    }
}

static void note_exit(struct router *r, struct group *g, uint32_t attempt, uint32_t rank, const struct process_end *end)
{
    g->ranks[rank].exit_attempt = attempt;
    g->ranks[rank].exit_code = end->exit_code;
    LIST_FOREACH(l, &g->members) {
        struct member *m = CONTAINER_OF(l, struct member, of_group);
        if (m->rank != rank || m->attempt != attempt)
            continue;
        bool registered = m->registered;
        fail_exited(r, m, end); // frees a member that is gone
        if (registered)
            expel(r, m, "exited", ERR_GONE, "the agent has reported the end of this process");
    }
}

void router_worker_exited(struct router *r, const char *uid, uint32_t attempt, uint32_t rank, int exit_code,
                          const char *last_lines)
{
    struct group *g = map_get(&r->by_uid, uid);
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    if (!g || rank >= g->world || attempt < g->ranks[rank].exit_attempt)
        return;
    const struct process_end end = {exit_code, last_line(last_lines, &a)};
    note_exit(r, g, attempt, rank, &end);
    if (g->bootstrap)
        note_exit(r, g->bootstrap, attempt, rank, &end);
    kill_ended(g, rank, attempt);
}

void router_gpus(struct router *r, const char *uid, uint32_t rank, const char *json)
{
    struct group *g = map_get(&r->by_uid, uid);
    if (g)
        group_gpus_set(g, rank, json);
}

// Another connection of that rank will not answer its calls any more.
static void take_over(struct router *r, const struct group *g, uint32_t rank)
{
    struct member *registered = g->ranks[rank].member;
    if (registered)
        expel(r, registered, "lost its connection", ERR_CONFLICT,
              "a newer connection of this rank has taken its place");
    LIST_FOREACH(l, &r->leaving) {
        struct member *old = CONTAINER_OF(l, struct member, leaving);
        if (old->group == g && old->rank == rank)
            router_leave(r, old);
    }
}

static struct group *bootstrap(struct router *r, struct group *of)
{
    bool new;
    struct group *g = group_bootstrap(of, &new);
    if (new)
        add_group(r, g);
    return g;
}

int router_join(struct router *r, const struct member_identity *id, const char *hello, size_t len,
                struct record_writer *out, void *owner, struct member **ret, struct err *err)
{
    struct group *g = map_get(&r->by_uid, id->group_uid);
    struct member *m;
    if (!g)
        return err_set(err, ERR_UNAVAILABLE, "this replica does not know WorkerGroup with UID %s yet; connect again",
                       id->group_uid);
    int code = member_new(id, hello, len, &m, err);
    if (code < 0)
        return code;
    code = group_admits(g, m, err);
    if (code == 0 && g->bootstrap)
        code = group_admits(g->bootstrap, m, err);
    if (code < 0) {
        member_free(m);
        return code;
    }
    take_over(r, g, m->rank);
    if (g->bootstrap)
        take_over(r, g->bootstrap, m->rank);
    kills_outdated(g, m->rank, m->attempt);
    if (m->awaits)
        g = bootstrap(r, g);
    peer_init(&m->peer, &r->changes, out, owner);
    if (id->welcome)
        (void)record_writer_copy(out, &(struct record_header){.type = RECORD_WELCOME, .rank = m->rank}, id->welcome,
                                 strlen(id->welcome), err); // the queue is empty, so this always has room
    peer_changed(&m->peer);
    group_join(g, m);
    look_again(r, g);
    *ret = m;
    return 0;
}

void router_leave(struct router *r, struct member *m)
{
    const struct group_rank *at = m->group && m->rank < m->group->world ? &m->group->ranks[m->rank] : NULL;
    bool late = !list_empty(&m->leaving);
    group_leave(m);
    note_unsent(m);
    peer_done(&m->peer);
    bool exited = at && at->exit_attempt && at->exit_attempt == m->attempt;
    if (m->n_pending && !late && !m->end && m->group && !exited) { // the agent is about to report how the process ended
        m->leave_at = clock_mono_ms(r->config.clock) + r->config.exit_wait_ms;
        list_append(&r->leaving, &m->leaving);
        return;
    }
    m->gone = true;
    if (m->end && list_empty(&m->failing))
        member_free(m);
    else if (m->n_pending && !late && exited)
        fail_exited(r, m, &(struct process_end){at->exit_code, ""});
    else
        fail_pending(r, m, m->cut ? arena_printf(&m->arena, "lost its connection (%s)", m->cut) : "lost its connection",
                     NULL);
}

static int take_answer(struct call_rank *rank, const struct record *rec)
{
    const struct call_body body = {rec->body, rec->len, rec->blob};
    bool first = rec->offset == 0, last = !(rec->h.flags & RECORD_MORE);
    if (rec->over) {
        result_too_long(rank, last);
    } else if (rec->h.type == RECORD_ERROR) {
        if (!last)
            return first ? ROUTER_COLLECT : 0;
        result_error(rank, &body);
    } else if (first && last && rec->len <= RECORD_BODY_MAX) {
        result_whole(rank, &body);
    } else if (!result_piece(rank, &body, first, last)) {
        if (!last)
            return ROUTER_COLLECT;
        result_whole(rank, &body); // by reference
    }
    return 0;
}

int router_member_record(struct router *r, struct member *m, const struct record *rec, struct err *err)
{
    if (m->peer.close_code)
        return 0;
    if (rec->h.type == RECORD_PLACE)
        return place_answer(r, m, rec, err);
    if (rec->h.type == RECORD_PROGRESS)
        return transfer_progress_take(m, rec, err);
    bool result = rec->h.type == RECORD_RESULT;
    if ((!result && rec->h.type != RECORD_ERROR) || rec->h.call == 0 || (rec->h.flags & RECORD_PARTS))
        return err_set(err, ERR_PROTO, "a worker must not send such %s records here", record_type_name(rec->h.type));
    struct call *c = idmap_get(&r->running, rec->h.call);
    struct call_rank *rank = c ? call_rank_of(c, m) : NULL;
    if (!rank)
        return err_set(err, ERR_PROTO, "rank %u answers call %u, which it does not have", m->rank, rec->h.call);
    if (!call_rank_has_all(rank))
        return err_set(err, ERR_PROTO, "rank %u answers call %u before it has all of it", m->rank, rec->h.call);
    return take_answer(rank, rec);
}

void router_replicas(struct router *r, const char *names)
{
    r->stats.replicas = names;
}

int64_t router_wait_ms(const struct router *r)
{
    const struct deadline *call = deadlines_first(&r->deadlines), *kill = deadlines_first(&r->kill_deadlines);
    int64_t at = MIN(call ? call->at : INT64_MAX, kill ? kill->at : INT64_MAX);
    at = MIN(at, output_due_ms(r));
    if (!list_empty(&r->leaving))
        at = MIN(at, CONTAINER_OF(r->leaving.next, struct member, leaving)->leave_at);
    if (is_behind(r))
        return 0;
    return at == INT64_MAX ? -1 : MAX((int64_t)0, at - clock_mono_ms(r->config.clock));
}

void router_tick(struct router *r)
{
    int64_t now = clock_mono_ms(r->config.clock);
    tenants_due(r, now);
    kills_tick(r, now, r->config.turn_work);
    output_tick(r, now);
    LIST_FOREACH(l, &r->leaving) {
        struct member *m = CONTAINER_OF(l, struct member, leaving);
        if (m->leave_at > now)
            break;
        router_leave(r, m);
    }
}

void router_waits(struct router *r)
{
    r->stats.now_us = 0;
}

void router_turn(struct router *r)
{
    jobs_go_on(r);
    catch_up(r);
    quota_go_on(r->bytes);
    r->at_once = r->config.turn_work;
    LIST_FOREACH(l, &r->flowing)
        result_flow(CONTAINER_OF(l, struct call, flowing));
    LIST_FOREACH(l, &r->stopped)
        session_flow(CONTAINER_OF(l, struct session, stopped));
}

struct peer *router_changed(struct router *r)
{
    struct list *l = list_pop(&r->changes);
    return l ? CONTAINER_OF(l, struct peer, changed) : NULL;
}
