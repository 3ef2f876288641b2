// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/agent.h"

#include "common/base/loop_resolve.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/agent/pod_archives.h"
#include "worker/agent/pod_rank.h"
#include "worker/agent/port.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

enum {
    SWEEP_MS = 20, // between two searches for what is left when the last process is gone
    SWEEPS_MAX = 250,
    FLUSH_MAX_MS = 2000,
    FLUSH_LOOK_MS = 10, // between two looks at the queue of a slow log reader at the end
    TEMPLATE_IMPORT_MS = 10 * 60 * 1000,
    TEMPLATE_IDLE_MS = 10 * 60 * 1000,
};

struct pod_group;

struct pod_group {
    struct agent *agent;
    struct supervisor *supervisor;
    struct pod_rank **ranks; // they stay until the group is forgotten, because they know about the last processes
    size_t n_ranks;
    struct template *template; // NULL = no process of the group was to be forked from a template
    size_t n_running;          // processes
    struct loop_timer *timer;
    struct loop_resolve *resolve;
    int busy; // above 0 while its actions are carried out
    struct loop_timer *sweep_timer;
    struct pod_rank *last_gone; // the supervisor hears that it is gone when the sweep is over
    int sweeps;
};

struct agent {
    struct agent_config config;
    struct child_reaper *reaper;
    struct rank_output *output;
    struct pod_archives *pod_archives;
    struct pod_group *groups[AGENT_GROUPS_MAX];
    size_t n_groups;
    size_t n_running; // processes, over all groups
    struct loop_timer *done_timer;
    bool closing, done;
    int64_t flush_by_ms; // 0 = not yet
    struct oom oom;
};

static void carry_out(struct pod_group *g);
static void on_happened(void *ctx, struct pod_rank *p, enum process_event event, const struct process_exit *exit);
static void look_done(struct agent *a);

static bool is_idle(const struct pod_group *g)
{
    return supervisor_state(g->supervisor) == SUPERVISOR_IDLE;
}

static struct pod_rank *rank_of(const struct pod_group *g, int rank)
{
    for (size_t i = 0; i < g->n_ranks; i++)
        if (pod_rank_number(g->ranks[i]) == rank)
            return g->ranks[i];
    return NULL;
}

static void on_printed(void *ctx, int rank, const char *text, size_t len)
{
    const struct pod_group *g = ctx;
    const struct agent_config *config = &g->agent->config;
    config->printed(config->ctx, supervisor_group(g->supervisor), rank, text, len);
}

static struct pod_rank *rank_need(struct pod_group *g, int rank)
{
    struct agent *a = g->agent;
    const struct pod_rank_config config = {.loop = a->config.loop,
                                           .reaper = a->reaper,
                                           .output = a->output,
                                           .oom = &a->oom,
                                           .rank = rank,
                                           .happened = on_happened,
                                           .printed = a->config.printed ? on_printed : NULL,
                                           .ctx = g};
    struct pod_rank *p = rank_of(g, rank);
    if (p)
        return p;
    g->ranks = xrealloc(g->ranks, g->n_ranks + 1, sizeof(struct pod_rank *));
    return g->ranks[g->n_ranks++] = pod_rank_new(&config);
}

static void tell_gone(struct pod_group *g, const struct pod_rank *p)
{
    supervisor_gone(g->supervisor, loop_now_ms(g->agent->config.loop), pod_rank_number(p));
    carry_out(g);
}

// If nothing else runs in the pod, all processes that nobody watches are orphans of this group. If another group runs,
// only those with the UID of this group are.
static int kill_orphans(struct pod_group *g)
{
    _cleanup_(arena_done) struct arena arena = ARENA_INIT;
    struct child_reaper *r = g->agent->reaper;
    const char *mark = arena_printf(&arena, "CADRE_GROUP_UID=%s", supervisor_group(g->supervisor));
    return g->n_running ? 0 : child_reaper_kill_orphans(r, g->agent->n_running ? mark : NULL);
}

// Some processes leave their process group: daemons, and workers of a launcher that was killed. They would keep GPU
// memory and ports from the next attempt.
static void sweep(void *ctx)
{
    struct pod_group *g = ctx;
    if (kill_orphans(g) > 0 && g->sweeps++ < SWEEPS_MAX)
        loop_timer_arm(g->sweep_timer, SWEEP_MS);
    else
        tell_gone(g, TAKE_PTR(g->last_gone));
}

static void on_gone(struct pod_group *g, struct pod_rank *p)
{
    g->agent->n_running--;
    if (--g->n_running > 0 || g->last_gone) {
        tell_gone(g, p);
        return;
    }
    g->last_gone = p;
    g->sweeps = 0;
    sweep(g);
}

static void on_happened(void *ctx, struct pod_rank *p, enum process_event event, const struct process_exit *exit)
{
    struct pod_group *g = ctx;
    if (event == PROCESS_GONE) {
        on_gone(g, p);
        return;
    }
    if (event == PROCESS_STARTED)
        supervisor_started(g->supervisor, pod_rank_number(p));
    else
        supervisor_exited(g->supervisor, pod_rank_number(p), exit->code, exit->signal);
    carry_out(g);
}

// A pod that belongs to the group has its UID in the environment.
static bool has_pod(const struct pod_group *g)
{
    const char *owner = environment_get(g->agent->config.env, "CADRE_GROUP_UID");
    return !owner || str_eq(owner, supervisor_group(g->supervisor));
}

// The template from which the group's processes are forked. NULL = they are started without one.
static struct template *template_of(struct pod_group *g, const struct command *c, const struct environment_group *group,
                                    const struct pod_rank_run *run, struct arena *arena)
{
    struct agent *a = g->agent;
    const struct template_config config = {.loop = a->config.loop,
                                           .reaper = a->reaper,
                                           .output = a->output,
                                           .oom = &a->oom,
                                           .preforked = &a->config.preforked,
                                           .import_ms = TEMPLATE_IMPORT_MS,
                                           .idle_ms = TEMPLATE_IDLE_MS};
    if (str_empty(environment_get(run->env, "CADRE_PRELOAD")))
        return NULL;
    const char *const *env = environment_template(a->config.env, group, arena);
    const struct template_source source = {.who = has_pod(g) ? "template"
                                                             : arena_printf(arena, "%s template", c->env.name),
                                           .argv = c->argv ? environment_expand_all(env, c->argv, arena) : run->argv,
                                           .env = env,
                                           .dir = run->dir};
    if (!g->template)
        g->template = template_new(&config);
    template_want(g->template, &source);
    return g->template;
}

static int prepare_run(struct pod_group *g, const struct supervisor_process *s, struct arena *arena,
                       struct pod_rank_run *ret, struct err *err)
{
    const struct agent_config *config = &g->agent->config;
    const struct command *c = s->command;
    struct environment_group group = c->env;
    group.brought = config->brought;
    group.gpus.count = group.gpus.count == GPUS_UNKNOWN ? config->gpus : group.gpus.count;
    int r = environment_build(config->env, &group, s->spec, arena, &ret->env, err);
    if (r < 0)
        return r;
    ret->argv = c->argv ? environment_expand_all(ret->env, c->argv, arena) : config->argv;
    ret->dir = c->dir; // for the pod's own command, the kubelet has set the directory
    if (!ret->argv)
        return err_set(err, ERR_INVALID, "no command to run: set a command in the pod or in spec.worker");
    ret->template = template_of(g, c, &group, ret, arena);
    pod_archives_want(g->agent->pod_archives, ret->env);
    return 0;
}

static const char *who_is(const struct pod_group *g, const struct supervisor_process *p, struct arena *arena)
{
    return has_pod(g) ? arena_printf(arena, "rank %d", p->spec->rank)
                      : arena_printf(arena, "%s rank %d", p->command->env.name, p->spec->rank);
}

static void on_launch(struct pod_group *g, const struct supervisor_action *action)
{
    _cleanup_(arena_done) struct arena arena = ARENA_INIT;
    struct err err = ERR_INIT;
    struct pod_rank_run run = {0};
    struct pod_rank *p = rank_need(g, action->rank);
    const char *who = who_is(g, action->process, &arena);
    g->agent->n_running++;
    g->n_running++;
    if (prepare_run(g, action->process, &arena, &run, &err) == 0)
        pod_rank_start(p, who, &run);
    else
        pod_rank_fail(p, who, err.msg);
}

// Writes "it resolves to 10.0.0.1, 10.0.0.7", and returns whether `address` is one of them.
static bool look_for(const struct addrinfo *found, const char *address, struct buf *words)
{
    bool matches = false;
    for (const struct addrinfo *i = found; i; i = i->ai_next) {
        char text[INET6_ADDRSTRLEN];
        if (getnameinfo(i->ai_addr, i->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        buf_printf(words, "%s%s", words->len ? ", " : "it resolves to ", text);
        matches = matches || str_eq(text, address);
    }
    return matches;
}

static void on_resolved(void *ctx, const struct addrinfo *found, const struct err *err)
{
    struct pod_group *g = ctx;
    _cleanup_(buf_done) struct buf words = BUF_INIT(200);
    const char *address = supervisor_master_ip(g->supervisor);
    g->resolve = NULL;
    bool matches = found && look_for(found, address, &words);
    supervisor_resolved(g->supervisor, loop_now_ms(g->agent->config.loop), matches, found ? buf_str(&words) : err->msg);
    carry_out(g);
}

static void on_try_port(struct pod_group *g, int port)
{
    struct err err = ERR_INIT;
    supervisor_port_tried(g->supervisor, port_try(port, &err) < 0 ? err.msg : NULL);
}

const char *agent_slow(const struct agent *a, size_t group)
{
    const struct pod_group *g = a->groups[group];
    struct pod_rank_news news = {.slow = ""};
    for (size_t i = 0; i < g->n_ranks && !news.slow[0]; i++)
        pod_rank_news(g->ranks[i], &news);
    return news.slow;
}

bool agent_exit_report(const struct agent *a, size_t group, int rank, struct agent_report *ret)
{
    const struct pod_rank *p = rank_of(a->groups[group], rank);
    struct pod_rank_news news;
    if (!p)
        return false;
    pod_rank_news(p, &news);
    ret->message = news.error;
    ret->oom = news.oom;
    ret->last = news.last;
    ret->last_len = news.last_len;
    return true;
}

static size_t index_of(const struct agent *a, const struct pod_group *g)
{
    size_t i = 0;
    while (a->groups[i] != g)
        i++;
    return i;
}

static void on_report(struct pod_group *g, const struct supervisor_action *action)
{
    struct agent *a = g->agent;
    struct agent_report r = {.type = action->report,
                             .group = supervisor_group(g->supervisor),
                             .attempt = action->attempt,
                             .rank = action->rank,
                             .code = action->code,
                             .signal = action->signal,
                             .message = action->message,
                             .port = action->port,
                             .last = ""};
    if (r.type == SUPERVISOR_REPORT_EXITED)
        agent_exit_report(a, index_of(a, g), r.rank, &r);
    else if (r.type == SUPERVISOR_REPORT_STARTED) {
        r.supervisor = g->supervisor;
        r.slow = agent_slow(a, index_of(a, g));
    } else if (r.type == SUPERVISOR_REPORT_UNPREPARED)
        rank_output_say(a->output, "%s", r.message);
    a->config.report(a->config.ctx, &r);
}

static void on_action(struct pod_group *g, const struct supervisor_action *action)
{
    switch (action->type) {
    case SUPERVISOR_RESOLVE:
        g->resolve = loop_resolve_new(g->agent->config.loop, action->host, NULL, on_resolved, g);
        break;
    case SUPERVISOR_TRY_PORT:
        on_try_port(g, action->port);
        break;
    case SUPERVISOR_LAUNCH:
        on_launch(g, action);
        break;
    case SUPERVISOR_TERMINATE:
        pod_rank_stop(rank_of(g, action->rank), action->grace_ms);
        break;
    case SUPERVISOR_KILL:
        pod_rank_kill(rank_of(g, action->rank));
        break;
    case SUPERVISOR_REPORT:
        on_report(g, action);
        break;
    }
}

static void carry_out(struct pod_group *g)
{
    struct supervisor_action action;
    g->busy++;
    while (supervisor_next(g->supervisor, &action))
        on_action(g, &action);
    g->busy--;
    int64_t at = supervisor_deadline_ms(g->supervisor);
    if (at == INT64_MAX)
        loop_timer_disarm(g->timer);
    else
        loop_timer_arm(g->timer, at - loop_now_ms(g->agent->config.loop));
    if (g->template && is_idle(g))
        template_rest(g->template);
    if (g->agent->closing)
        look_done(g->agent);
}

static void on_timer(void *ctx)
{
    struct pod_group *g = ctx;
    supervisor_tick(g->supervisor, loop_now_ms(g->agent->config.loop));
    carry_out(g);
}

static struct pod_group *group_new(struct agent *a, const char *name)
{
    struct pod_group *g = xcalloc(1, sizeof *g);
    g->agent = a;
    g->supervisor = supervisor_new(name);
    g->timer = loop_timer_new(a->config.loop, on_timer, g);
    g->sweep_timer = loop_timer_new(a->config.loop, sweep, g);
    return g;
}

static void group_free(struct pod_group *g)
{
    for (size_t i = 0; i < g->n_ranks; i++)
        pod_rank_free(g->ranks[i]);
    free(g->ranks);
    template_free(g->template);
    loop_resolve_cancel(g->resolve);
    loop_timer_free(g->timer);
    loop_timer_free(g->sweep_timer);
    supervisor_free(g->supervisor);
    free(g);
}

// Makes room for a new group: forgets the oldest idle one.
static bool make_room(struct agent *a)
{
    if (a->n_groups < AGENT_GROUPS_MAX)
        return true;
    for (size_t i = 0; i < a->n_groups; i++)
        if (is_idle(a->groups[i]) && !a->groups[i]->busy && !a->groups[i]->resolve) {
            group_free(a->groups[i]);
            memmove(&a->groups[i], &a->groups[i + 1], (--a->n_groups - i) * sizeof a->groups[0]);
            return true;
        }
    return false;
}

static struct pod_group *group_find(const struct agent *a, const char *name)
{
    for (size_t i = 0; i < a->n_groups; i++)
        if (str_eq(supervisor_group(a->groups[i]->supervisor), name))
            return a->groups[i];
    return NULL;
}

static struct pod_group *group_need(struct agent *a, const struct command *c, struct err *err)
{
    struct pod_group *known = group_find(a, c->group);
    if (known)
        return known;
    if (c->type == RECORD_KILL)
        err_set(err, ERR_CONFLICT, "none of its processes runs here");
    else if (a->closing)
        err_set(err, ERR_CONFLICT, "the pod is about to end");
    else if (!make_room(a))
        err_set(err, ERR_LIMIT, "%d groups run here, which is the limit", AGENT_GROUPS_MAX);
    return err->code ? NULL : (a->groups[a->n_groups++] = group_new(a, c->group));
}

int agent_command(struct agent *a, struct command *c, struct err *err)
{
    struct pod_group *g = group_need(a, c, err); // no new group when the pod ends
    if (!g)
        return err->code;
    int r = supervisor_command(g->supervisor, loop_now_ms(a->config.loop), c, err);
    carry_out(g);
    if (r == 0 && c->type == RECORD_STOP && c->end)
        agent_shutdown(a, c->grace_ms);
    return r;
}

static bool all_idle(const struct agent *a)
{
    for (size_t i = 0; i < a->n_groups; i++)
        if (!is_idle(a->groups[i]) || a->groups[i]->busy)
            return false;
    return true;
}

static void look_done(struct agent *a)
{
    if (a->done || !all_idle(a))
        return;
    if (a->flush_by_ms == 0)
        a->flush_by_ms = loop_now_ms(a->config.loop) + FLUSH_MAX_MS;
    loop_timer_arm(a->done_timer, rank_output_pending(a->output) ? FLUSH_LOOK_MS : 0);
}

static void on_done_timer(void *ctx)
{
    struct agent *a = ctx;
    if (rank_output_pending(a->output) && loop_now_ms(a->config.loop) < a->flush_by_ms) {
        look_done(a);
        return;
    }
    a->done = true;
    a->config.done(a->config.ctx);
}

void agent_shutdown(struct agent *a, int64_t grace_ms)
{
    a->closing = true;
    for (size_t i = 0; i < a->n_groups; i++) {
        supervisor_shutdown(a->groups[i]->supervisor, loop_now_ms(a->config.loop), grace_ms);
        carry_out(a->groups[i]);
    }
    look_done(a);
}

struct agent *agent_new(const struct agent_config *c)
{
    struct agent *a = xcalloc(1, sizeof *a);
    a->config = *c;
    a->oom = (struct oom){.root = OOM_CGROUP};
    a->reaper = child_reaper_new(c->loop);
    a->output = rank_output_new(c->loop, c->out, c->err);
    a->pod_archives = pod_archives_new(c->loop);
    a->done_timer = loop_timer_new(c->loop, on_done_timer, a);
    return a;
}

void agent_free(struct agent *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->n_groups; i++)
        group_free(a->groups[i]);
    loop_timer_free(a->done_timer);
    rank_output_free(a->output);
    pod_archives_free(a->pod_archives);
    child_reaper_free(a->reaper);
    free(a);
}

struct pod_archives *agent_pod_archives(const struct agent *a)
{
    return a->pod_archives;
}

struct rank_output *agent_output(struct agent *a)
{
    return a->output;
}

struct child_reaper *agent_reaper(struct agent *a)
{
    return a->reaper;
}

size_t agent_group_count(const struct agent *a)
{
    return a->n_groups;
}

const struct supervisor *agent_group_at(const struct agent *a, size_t i)
{
    return a->groups[i]->supervisor;
}
