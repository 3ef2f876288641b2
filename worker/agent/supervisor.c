// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/supervisor.h"

#include "common/base/mem.h"

#include <stdio.h>
#include <stdlib.h>

enum { RETRY_FIRST_MS = 50, RETRY_MAX_MS = 1000 };

struct supervisor {
    char *group;
    enum supervisor_state state;
    int attempt;     // the newest that was accepted, -1 = none
    int min_attempt; // the oldest that may be prepared; after a stop, only newer ones
    bool closed;     // the pod ends
    bool tell_started;
    struct command *prepare;                      // set from PREPARING on
    struct command *next;                         // STOPPING: to be prepared afterwards
    bool resolving, stale;                        // stale: the next answer is to the question of an older prepare
    int64_t retry_at_ms, retry_ms, give_up_at_ms; // PREPARING
    char found[256];
    struct supervisor_process processes[COMMAND_PROCESSES_MAX];
    size_t n_processes;
    struct supervisor_action *actions; // a queue: [first, last)
    size_t first, last, size;
};

struct supervisor *supervisor_new(const char *group)
{
    struct supervisor *s = xcalloc(1, sizeof *s);
    s->group = xstrdup(group);
    s->attempt = -1;
    return s;
}

static void forget_processes(struct supervisor *s)
{
    for (size_t i = 0; i < s->n_processes; i++) {
        command_unref(s->processes[i].command);
        command_unref(s->processes[i].next);
    }
    s->n_processes = 0;
}

static void set(struct command **at, struct command *c)
{
    struct command *before = *at;
    *at = c ? command_ref(c) : NULL;
    command_unref(before);
}

void supervisor_free(struct supervisor *s)
{
    if (!s)
        return;
    forget_processes(s);
    set(&s->prepare, NULL);
    set(&s->next, NULL);
    free(s->actions);
    free(s->group);
    free(s);
}

static struct supervisor_action *act(struct supervisor *s, enum supervisor_action_type type)
{
    MEM_GROW(s->actions, s->last, s->size);
    struct supervisor_action *a = &s->actions[s->last++];
    *a = (struct supervisor_action){.type = type, .attempt = s->attempt};
    return a;
}

bool supervisor_next(struct supervisor *s, struct supervisor_action *ret)
{
    if (s->first == s->last) {
        s->first = s->last = 0;
        return false;
    }
    *ret = s->actions[s->first++];
    return true;
}

static struct supervisor_action *report(struct supervisor *s, enum supervisor_report what)
{
    struct supervisor_action *a = act(s, SUPERVISOR_REPORT);
    a->report = what;
    return a;
}

static struct supervisor_process *find(struct supervisor *s, int rank)
{
    for (size_t i = 0; i < s->n_processes; i++)
        if (s->processes[i].spec->rank == rank)
            return &s->processes[i];
    return NULL;
}

static bool any_alive(const struct supervisor *s)
{
    for (size_t i = 0; i < s->n_processes; i++)
        if (s->processes[i].state != SUPERVISOR_PROCESS_GONE)
            return true;
    return false;
}

static void launch(struct supervisor *s, struct supervisor_process *p)
{
    struct command *before = p->command;
    p->command = TAKE_PTR(p->next);
    p->spec = TAKE_PTR(p->next_spec);
    p->state = SUPERVISOR_PROCESS_STARTING;
    p->code = p->signal = 0;
    command_unref(before);
    struct supervisor_action *a = act(s, SUPERVISOR_LAUNCH);
    a->process = p;
    a->rank = p->spec->rank;
}

static void terminate(struct supervisor *s, const struct supervisor_process *p, int64_t grace_ms)
{
    struct supervisor_action *a = act(s, SUPERVISOR_TERMINATE);
    a->rank = p->spec->rank;
    a->grace_ms = grace_ms;
}

static void prepared(struct supervisor *s)
{
    s->state = SUPERVISOR_PREPARED;
    report(s, SUPERVISOR_REPORT_PREPARED);
}

static struct supervisor_action *unprepared(struct supervisor *s)
{
    s->state = SUPERVISOR_IDLE;
    return report(s, SUPERVISOR_REPORT_UNPREPARED);
}

// MASTER_ADDR has the right address.
static void try_port(struct supervisor *s)
{
    if (s->prepare->master_port)
        act(s, SUPERVISOR_TRY_PORT)->port = s->prepare->master_port;
    else
        prepared(s);
}

void supervisor_port_tried(struct supervisor *s, const char *why_not)
{
    if (!why_not) {
        prepared(s);
        return;
    }
    struct supervisor_action *a = unprepared(s);
    snprintf(a->message, sizeof a->message, "%s", why_not);
    a->port = s->prepare->master_port;
    set(&s->prepare, NULL);
}

static void resolve(struct supervisor *s)
{
    s->resolving = true;
    act(s, SUPERVISOR_RESOLVE)->host = s->prepare->master_addr;
}

static void begin(struct supervisor *s, int64_t now_ms, struct command *c)
{
    set(&s->prepare, c);
    forget_processes(s);
    s->attempt = s->min_attempt = c->attempt;
    s->tell_started = false;
    s->state = SUPERVISOR_PREPARING;
    if (!c->master_addr) {
        try_port(s);
        return;
    }
    s->retry_ms = RETRY_FIRST_MS;
    s->give_up_at_ms = now_ms + c->timeout_ms;
    s->found[0] = '\0';
    if (s->resolving)
        s->stale = true;
    else
        resolve(s);
}

// The last process is gone. The group becomes idle, or prepares the next attempt.
static void finish_stop(struct supervisor *s, int64_t now_ms)
{
    struct command *next = TAKE_PTR(s->next);
    report(s, SUPERVISOR_REPORT_STOPPED);
    s->state = SUPERVISOR_IDLE;
    set(&s->prepare, NULL);
    forget_processes(s);
    if (next)
        begin(s, now_ms, next);
    command_unref(next);
}

static void stop_all(struct supervisor *s, int64_t now_ms, int64_t grace_ms)
{
    s->state = SUPERVISOR_STOPPING;
    s->tell_started = false;
    for (size_t i = 0; i < s->n_processes; i++) {
        struct supervisor_process *p = &s->processes[i];
        command_unref(TAKE_PTR(p->next));
        if (p->state != SUPERVISOR_PROCESS_GONE)
            terminate(s, p, grace_ms);
    }
    if (!any_alive(s))
        finish_stop(s, now_ms);
}

static int refuse_older(const struct supervisor *s, const struct command *c, int newest, struct err *err)
{
    return err_set(err, ERR_CONFLICT, "attempt %d of group %s is over, the newest is %d", c->attempt, s->group, newest);
}

static int on_prepare(struct supervisor *s, int64_t now_ms, struct command *c, struct err *err)
{
    int newest = s->next ? s->next->attempt : s->min_attempt;
    if (c->attempt < newest)
        return refuse_older(s, c, MAX(s->attempt, newest - 1), err);
    if (s->state == SUPERVISOR_STOPPING) {
        set(&s->next, c);
    } else if (s->state == SUPERVISOR_IDLE || c->attempt > s->attempt) {
        if (s->state == SUPERVISOR_RUNNING) {
            set(&s->next, c);
            stop_all(s, now_ms, c->grace_ms);
        } else {
            begin(s, now_ms, c);
        }
    } else if (s->state != SUPERVISOR_PREPARING) { // the command was repeated
        report(s, SUPERVISOR_REPORT_PREPARED);
    }
    return 0;
}

// Lets the process of a command start as soon as the previous process of its rank is gone.
static void put_next(struct supervisor *s, struct supervisor_process *p, struct command *c, size_t i)
{
    command_unref(p->next);
    p->next = command_ref(c);
    p->next_spec = &c->processes[i];
    if (p->state == SUPERVISOR_PROCESS_GONE)
        launch(s, p);
    else
        terminate(s, p, c->grace_ms);
}

static void report_exit(struct supervisor *s, const struct supervisor_process *p)
{
    struct supervisor_action *a = report(s, SUPERVISOR_REPORT_EXITED);
    a->attempt = p->command->attempt;
    a->rank = p->spec->rank;
    a->code = p->code;
    a->signal = p->signal;
}

static void report_again(struct supervisor *s)
{
    size_t n = s->last;
    for (size_t i = 0; i < s->n_processes; i++)
        if (s->processes[i].state >= SUPERVISOR_PROCESS_EXITED)
            report_exit(s, &s->processes[i]);
    if (s->last == n && !s->tell_started)
        report(s, SUPERVISOR_REPORT_STARTED);
}

static int on_start(struct supervisor *s, struct command *c, struct err *err)
{
    if (c->attempt < s->attempt)
        return refuse_older(s, c, s->attempt, err);
    if (c->attempt == s->attempt && s->state == SUPERVISOR_RUNNING) { // the command was repeated
        report_again(s);
        return 0;
    }
    if (c->attempt != s->attempt || s->state != SUPERVISOR_PREPARED)
        return err_set(err, ERR_CONFLICT, "attempt %d of group %s cannot start: it is not prepared (%s, attempt %d)",
                       c->attempt, s->group, supervisor_state_name(s->state), s->attempt);
    if (c->n_processes > COMMAND_PROCESSES_MAX)
        return err_set(err, ERR_LIMIT, "%zu processes in a pod, at most %d", c->n_processes, COMMAND_PROCESSES_MAX);
    s->state = SUPERVISOR_RUNNING;
    s->tell_started = true;
    for (size_t i = 0; i < c->n_processes; i++) {
        struct supervisor_process *p = &s->processes[s->n_processes++];
        *p = (struct supervisor_process){.state = SUPERVISOR_PROCESS_GONE};
        put_next(s, p, c, i);
    }
    return 0;
}

static int on_restart(struct supervisor *s, struct command *c, struct err *err)
{
    if (c->attempt < s->attempt)
        return refuse_older(s, c, s->attempt, err);
    if (s->state != SUPERVISOR_RUNNING)
        return err_set(err, ERR_CONFLICT, "ranks of group %s cannot be restarted: it does not run (%s, attempt %d)",
                       s->group, supervisor_state_name(s->state), s->attempt);
    for (size_t i = 0; i < c->n_processes; i++)
        if (!find(s, c->processes[i].rank))
            return err_set(err, ERR_CONFLICT, "rank %d of group %s was never started here", c->processes[i].rank,
                           s->group);
    s->attempt = s->min_attempt = c->attempt;
    for (size_t i = 0; i < c->n_processes; i++) {
        struct supervisor_process *p = find(s, c->processes[i].rank);
        if ((p->next ? p->next : p->command)->attempt < c->attempt) { // else the command was repeated
            s->tell_started = true;
            put_next(s, p, c, i);
        }
    }
    return 0;
}

static int on_stop(struct supervisor *s, int64_t now_ms, struct command *c, struct err *err)
{
    if (c->attempt < s->attempt)
        return refuse_older(s, c, s->attempt, err);
    if (s->next && s->next->attempt <= c->attempt)
        set(&s->next, NULL);
    s->attempt = c->attempt;
    s->min_attempt = MAX(s->min_attempt, c->attempt + 1);
    stop_all(s, now_ms, c->grace_ms);
    return 0;
}

static int on_kill(struct supervisor *s, const struct command *c, struct err *err)
{
    const struct supervisor_process *p = find(s, c->rank);
    if (!p || p->state > SUPERVISOR_PROCESS_RUNNING)
        return err_set(err, ERR_CONFLICT, "no process of rank %d runs here", c->rank);
    if (c->attempt && c->attempt != p->command->attempt)
        return err_set(err, ERR_CONFLICT, "the process of rank %d belongs to attempt %d, not %d", c->rank,
                       p->command->attempt, c->attempt);
    act(s, SUPERVISOR_KILL)->rank = c->rank;
    return 0;
}

int supervisor_command(struct supervisor *s, int64_t now_ms, struct command *c, struct err *err)
{
    if (s->closed && c->type != RECORD_KILL) // a kill makes the end come sooner
        return err_set(err, ERR_CONFLICT, "the pod is about to end");
    switch (c->type) {
    case RECORD_PREPARE:
        return on_prepare(s, now_ms, c, err);
    case RECORD_START:
        return on_start(s, c, err);
    case RECORD_RESTART:
        return on_restart(s, c, err);
    case RECORD_STOP:
        return on_stop(s, now_ms, c, err);
    case RECORD_KILL:
        return on_kill(s, c, err);
    default:
        return err_set(err, ERR_INTERNAL, "an unknown command");
    }
}

void supervisor_shutdown(struct supervisor *s, int64_t now_ms, int64_t grace_ms)
{
    s->closed = true;
    set(&s->next, NULL);
    if (s->state != SUPERVISOR_IDLE)
        stop_all(s, now_ms, grace_ms);
}

static void give_up(struct supervisor *s)
{
    struct supervisor_action *a = unprepared(s);
    snprintf(a->message, sizeof a->message, "%s does not resolve to %s, the pod of rank 0, within %.1f s: %s",
             s->prepare->master_addr, s->prepare->master_ip, (double)s->prepare->timeout_ms / 1000, s->found);
    set(&s->prepare, NULL);
}

void supervisor_resolved(struct supervisor *s, int64_t now_ms, bool matches, const char *found)
{
    bool stale = s->stale;
    s->resolving = s->stale = false;
    if (s->state != SUPERVISOR_PREPARING)
        return;
    if (stale) {
        resolve(s);
        return;
    }
    snprintf(s->found, sizeof s->found, "%s", found);
    if (matches) {
        try_port(s);
    } else if (now_ms >= s->give_up_at_ms) {
        give_up(s);
    } else {
        s->retry_at_ms = MIN(now_ms + s->retry_ms, s->give_up_at_ms);
        s->retry_ms = MIN(2 * s->retry_ms, (int64_t)RETRY_MAX_MS);
    }
}

void supervisor_tick(struct supervisor *s, int64_t now_ms)
{
    if (now_ms >= supervisor_deadline_ms(s))
        resolve(s);
}

int64_t supervisor_deadline_ms(const struct supervisor *s)
{
    return s->state == SUPERVISOR_PREPARING && !s->resolving ? s->retry_at_ms : INT64_MAX;
}

static void look_started(struct supervisor *s)
{
    bool all = s->tell_started;
    for (size_t i = 0; i < s->n_processes; i++)
        all = all && s->processes[i].state != SUPERVISOR_PROCESS_STARTING && !s->processes[i].next;
    if (!all)
        return;
    s->tell_started = false;
    report(s, SUPERVISOR_REPORT_STARTED);
}

void supervisor_started(struct supervisor *s, int rank)
{
    struct supervisor_process *p = find(s, rank);
    if (!p || p->state != SUPERVISOR_PROCESS_STARTING)
        return;
    p->state = SUPERVISOR_PROCESS_RUNNING;
    look_started(s);
}

void supervisor_exited(struct supervisor *s, int rank, int code, int signal)
{
    struct supervisor_process *p = find(s, rank);
    if (!p || p->state > SUPERVISOR_PROCESS_RUNNING)
        return;
    if (p->state == SUPERVISOR_PROCESS_STARTING && !p->next)
        s->tell_started = false; // one of the processes never ran
    p->state = SUPERVISOR_PROCESS_EXITED;
    p->code = code;
    p->signal = signal;
    report_exit(s, p);
}

void supervisor_gone(struct supervisor *s, int64_t now_ms, int rank)
{
    struct supervisor_process *p = find(s, rank);
    if (!p || p->state != SUPERVISOR_PROCESS_EXITED)
        return;
    p->state = SUPERVISOR_PROCESS_GONE;
    if (p->next)
        launch(s, p);
    else if (s->state == SUPERVISOR_STOPPING && !any_alive(s))
        finish_stop(s, now_ms);
}

enum supervisor_state supervisor_state(const struct supervisor *s)
{
    return s->state;
}

const char *supervisor_state_name(enum supervisor_state state)
{
    static const char *const names[] = {"Idle", "Preparing", "Prepared", "Running", "Stopping"};
    return names[state];
}

const char *supervisor_group(const struct supervisor *s)
{
    return s->group;
}

int supervisor_attempt(const struct supervisor *s)
{
    return s->attempt;
}

const char *supervisor_master_ip(const struct supervisor *s)
{
    return s->prepare ? s->prepare->master_ip : NULL;
}

size_t supervisor_process_count(const struct supervisor *s)
{
    return s->n_processes;
}

const struct supervisor_process *supervisor_process_at(const struct supervisor *s, size_t i)
{
    return &s->processes[i];
}
