// SPDX-License-Identifier: Apache-2.0
#include "operator/agents/reported_group.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reported_group *reported_group_new(const char *group, size_t *text)
{
    struct reported_group *g = xcalloc(1, sizeof *g);
    snprintf(g->group, sizeof g->group, "%s", group);
    g->text = text;
    return g;
}

static void clear_texts(struct reported_group *g, struct reported_process *p)
{
    free((char *)TAKE_PTR(p->now.message));
    free((char *)TAKE_PTR(p->now.last_lines));
    *g->text += p->text;
    p->text = 0;
}

static void clear_process(struct reported_group *g, struct reported_process *p)
{
    clear_texts(g, p);
    *p = (struct reported_process){.now = {.rank = p->now.rank}};
}

static void forget_processes(struct reported_group *g)
{
    for (size_t i = 0; i < g->n_processes; i++)
        clear_process(g, &g->processes[i]);
    free(TAKE_PTR(g->processes));
    g->n_processes = 0;
}

static void clear_error(struct reported_group *g)
{
    free(TAKE_PTR(g->error));
    g->error_ms = 0;
    g->taken_port = 0;
}

// Returns at most `max` bytes of valid UTF-8, as whole characters: the first ones, or the last ones.
static char *shorten(const char *s, size_t max, bool last)
{
    size_t len = strlen(s), from = 0, n = MIN(len, max);
    if (last) {
        from = len - n;
        while (from < len && ((unsigned char)s[from] & 0xC0) == 0x80)
            from++;
        n = len - from;
    } else {
        while (n < len && n > 0 && ((unsigned char)s[n] & 0xC0) == 0x80)
            n--;
    }
    char *copy = xmalloc(n + 1);
    memcpy(copy, s + from, n);
    copy[n] = '\0';
    return copy;
}

static void set_slow(struct reported_group *g, const char *why)
{
    free(g->slow);
    g->slow = str_empty(why) ? NULL : shorten(why, REPORTED_MESSAGE_MAX, false);
}

void reported_group_free(struct reported_group *g)
{
    free(g->slow);
    forget_processes(g);
    clear_error(g);
    free(g);
}

static void set_error(struct reported_group *g, const char *error, int64_t now_ms)
{
    char *copy = shorten(error, REPORTED_MESSAGE_MAX, false);
    clear_error(g);
    g->error = copy;
    g->error_ms = now_ms;
}

// Keeps a text. If there is no room, the text is left out.
static const char *keep_text(struct reported_group *g, struct reported_process *p, const char *s, size_t max, bool last)
{
    if (str_empty(s))
        return NULL;
    char *copy = shorten(s, max, last);
    size_t size = strlen(copy) + 1;
    if (size > *g->text) {
        free(copy);
        return NULL;
    }
    *g->text -= size;
    p->text += size;
    return copy;
}

static void set_process(struct reported_group *g, struct reported_process *p, const struct agent_process *r,
                        int64_t now_ms)
{
    bool known = p->now.state == AGENT_PROCESS_EXITED && r->state == AGENT_PROCESS_EXITED &&
                 p->now.attempt == r->attempt && p->now.ended_ms;
    int64_t ended_ms = known ? p->now.ended_ms : now_ms;
    clear_process(g, p);
    p->now.attempt = r->attempt;
    p->now.state = r->state;
    if (r->state != AGENT_PROCESS_EXITED)
        return;
    p->now.exit_code = r->exit_code;
    p->now.signal = r->signal;
    p->now.oom = r->oom;
    p->now.ended_ms = ended_ms;
    p->now.message = keep_text(g, p, r->message, REPORTED_MESSAGE_MAX, false);
    p->now.last_lines = keep_text(g, p, r->last_lines, REPORTED_LAST_LINES_MAX, true);
}

// Returns the index of the process of a rank, or the index where it belongs.
static size_t index_of(const struct reported_group *g, int32_t rank)
{
    size_t low = 0, high = g->n_processes;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (g->processes[mid].now.rank < rank)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct reported_process *find(const struct reported_group *g, int32_t rank)
{
    size_t i = index_of(g, rank);
    return i < g->n_processes && g->processes[i].now.rank == rank ? &g->processes[i] : NULL;
}

static struct reported_process *need(struct reported_group *g, int32_t rank, struct err *err)
{
    struct reported_process *p = find(g, rank);
    if (p)
        return p;
    if (g->n_processes == REPORT_PROCESSES_MAX) {
        err_set(err, ERR_LIMIT, "group %s: more than %d processes in a pod", g->group, REPORT_PROCESSES_MAX);
        return NULL;
    }
    size_t i = index_of(g, rank);
    g->processes = xrealloc(g->processes, g->n_processes + 1, sizeof *g->processes);
    memmove(&g->processes[i + 1], &g->processes[i], (g->n_processes++ - i) * sizeof *g->processes);
    g->processes[i] = (struct reported_process){.now = {.rank = rank}};
    return &g->processes[i];
}

// The command was followed or refused. An answer to an earlier command does not count for it.
static void answered(struct reported_group *g, uint8_t command, int32_t attempt)
{
    if (g->sent == command && g->sent_attempt <= attempt)
        g->sent = 0;
}

// A HELLO contains everything that the agent has. Everything else does not exist.
static int on_hello(struct reported_group *g, const struct decoded_report *r, int64_t now_ms, struct err *err)
{
    struct reported_group before = *g;
    for (size_t i = 0; i < before.n_processes; i++)
        clear_texts(&before, &before.processes[i]);
    g->processes = NULL;
    g->n_processes = 0;
    for (size_t i = 0; i < r->n_processes && err->code == 0; i++) {
        const struct agent_process *said = &r->processes[i];
        const struct reported_process *old = find(&before, said->rank);
        struct reported_process *p = need(g, said->rank, err);
        if (!p)
            break;
        if (old && p->text == 0)
            p->now = old->now; // keeps the time when it ended
        set_process(g, p, said, now_ms);
    }
    forget_processes(&before);
    if (r->attempt != g->attempt || r->state != AGENT_IDLE)
        clear_error(g);
    g->attempt = r->attempt;
    g->state = r->state;
    g->sent = 0;
    set_slow(g, r->slow);
    return err->code;
}

static void on_prepared(struct reported_group *g, const struct decoded_report *r, int64_t now_ms)
{
    answered(g, RECORD_PREPARE, r->attempt);
    if (r->attempt < g->attempt || (r->attempt == g->attempt && g->state == AGENT_RUNNING))
        return; // it runs already: the command came twice
    forget_processes(g);
    g->attempt = r->attempt;
    g->state = r->error ? AGENT_IDLE : AGENT_PREPARED;
    if (r->error)
        set_error(g, r->error, now_ms);
    else
        clear_error(g);
    g->taken_port = r->taken_port;
}

static void runs(struct reported_group *g, int32_t attempt)
{
    g->attempt = MAX(g->attempt, attempt);
    g->state = AGENT_RUNNING;
}

static int on_started(struct reported_group *g, const struct decoded_report *r, int64_t now_ms, struct err *err)
{
    answered(g, RECORD_START, r->attempt);
    answered(g, RECORD_RESTART, r->attempt);
    if (r->attempt < g->attempt)
        return 0;
    runs(g, r->attempt);
    clear_error(g);
    set_slow(g, r->slow);
    for (size_t i = 0; i < r->n_processes; i++) {
        const struct reported_process *old = find(g, r->processes[i].rank);
        if (old && (old->now.attempt > r->processes[i].attempt ||
                    (old->now.attempt == r->processes[i].attempt && old->now.state == AGENT_PROCESS_EXITED)))
            continue; // it has ended meanwhile
        struct reported_process *p = need(g, r->processes[i].rank, err);
        if (!p)
            return err->code;
        set_process(g, p, &r->processes[i], now_ms);
    }
    for (size_t i = 0; !r->processes_told && i < g->n_processes; i++)
        if (g->processes[i].now.state == AGENT_PROCESS_STARTING)
            g->processes[i].now.state = AGENT_PROCESS_RUNNING;
    return 0;
}

static int on_exited(struct reported_group *g, const struct decoded_report *r, int64_t now_ms, struct err *err)
{
    const struct agent_process *said = &r->processes[0];
    const struct reported_process *old = find(g, said->rank);
    answered(g, RECORD_START, said->attempt);
    answered(g, RECORD_RESTART, said->attempt);
    if (old ? old->now.attempt > said->attempt : said->attempt < g->attempt)
        return 0; // this is about an earlier start of the process
    struct reported_process *p = need(g, said->rank, err);
    if (!p)
        return err->code;
    if (said->attempt > g->attempt || g->state == AGENT_PREPARED)
        runs(g, said->attempt);
    set_process(g, p, said, now_ms);
    return 0;
}

static void on_stopped(struct reported_group *g, const struct decoded_report *r)
{
    answered(g, RECORD_STOP, r->attempt);
    if (r->attempt < g->attempt)
        return;
    forget_processes(g);
    clear_error(g);
    g->attempt = r->attempt;
    g->state = AGENT_IDLE;
}

static void on_refused(struct reported_group *g, const struct decoded_report *r, int64_t now_ms)
{
    if (g->sent != r->command || (r->group && g->sent_attempt != r->attempt))
        return; // a later command still waits for its answer
    g->sent = 0;
    set_error(g, r->error, now_ms);
}

int reported_group_update(struct reported_group *g, const struct decoded_report *r, int64_t now_ms, struct err *err)
{
    switch (r->type) {
    case RECORD_HELLO:
        return on_hello(g, r, now_ms, err);
    case RECORD_PREPARED:
        on_prepared(g, r, now_ms);
        return 0;
    case RECORD_STARTED:
        return on_started(g, r, now_ms, err);
    case RECORD_EXITED:
        return on_exited(g, r, now_ms, err);
    case RECORD_STOPPED:
        on_stopped(g, r);
        return 0;
    default:
        on_refused(g, r, now_ms);
        return 0;
    }
}

void reported_group_sent(struct reported_group *g, uint8_t type, int32_t attempt)
{
    g->sent = type;
    g->sent_attempt = attempt;
}

void reported_group_lost(struct reported_group *g)
{
    g->sent = 0;
}

void reported_group_clock_moved(struct reported_group *g, int64_t ms)
{
    g->error_ms += g->error_ms ? ms : 0;
    for (size_t i = 0; i < g->n_processes; i++)
        g->processes[i].now.ended_ms += g->processes[i].now.ended_ms ? ms : 0;
}

bool reported_group_idle(const struct reported_group *g)
{
    return g->state == AGENT_IDLE && !g->sent;
}

void reported_group_facts(const struct reported_group *g, struct arena *a, struct agent_facts *ret)
{
    struct agent_process *processes = arena_array(a, g->n_processes, sizeof *processes);
    for (size_t i = 0; i < g->n_processes; i++) {
        const struct agent_process *now = &g->processes[i].now;
        processes[i] = *now;
        processes[i].message = now->message ? arena_strdup(a, now->message) : "";
        processes[i].last_lines = now->last_lines ? arena_strdup(a, now->last_lines) : "";
    }
    ret->state = g->state;
    ret->attempt = g->attempt;
    ret->sent = g->sent;
    ret->sent_attempt = g->sent ? g->sent_attempt : 0;
    ret->error = arena_strdup(a, g->error);
    ret->error_ms = g->error_ms;
    ret->slow = g->slow ? arena_strdup(a, g->slow) : NULL;
    ret->taken_port = g->taken_port;
    ret->processes = processes;
    ret->n_processes = g->n_processes;
}
