// SPDX-License-Identifier: Apache-2.0
#include "operator/agents/known.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct known *known_new(const char *group, size_t *text)
{
    struct known *k = xcalloc(1, sizeof *k);
    snprintf(k->group, sizeof k->group, "%s", group);
    k->text = text;
    return k;
}

static void clear_texts(struct known *k, struct known_process *p)
{
    free((char *)TAKE_PTR(p->now.message));
    free((char *)TAKE_PTR(p->now.last_lines));
    *k->text += p->text;
    p->text = 0;
}

static void clear_process(struct known *k, struct known_process *p)
{
    clear_texts(k, p);
    *p = (struct known_process){.now = {.rank = p->now.rank}};
}

static void forget_processes(struct known *k)
{
    for (size_t i = 0; i < k->n_processes; i++)
        clear_process(k, &k->processes[i]);
    free(TAKE_PTR(k->processes));
    k->n_processes = 0;
}

static void clear_error(struct known *k)
{
    free(TAKE_PTR(k->error));
    k->error_ms = 0;
    k->taken_port = 0;
}

// Returns at most `max` bytes of valid UTF-8, as whole characters: the first ones, or the last ones.
static char *cut(const char *s, size_t max, bool last)
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

static void set_slow(struct known *k, const char *why)
{
    free(k->slow);
    k->slow = str_empty(why) ? NULL : cut(why, KNOWN_MESSAGE_MAX, false);
}

void known_free(struct known *k)
{
    free(k->slow);
    forget_processes(k);
    clear_error(k);
    free(k);
}

static void set_error(struct known *k, const char *error, int64_t now_ms)
{
    char *copy = cut(error, KNOWN_MESSAGE_MAX, false);
    clear_error(k);
    k->error = copy;
    k->error_ms = now_ms;
}

// Keeps a text. If there is no room, the text is left out.
static const char *keep_text(struct known *k, struct known_process *p, const char *s, size_t max, bool last)
{
    if (str_empty(s))
        return NULL;
    char *copy = cut(s, max, last);
    size_t size = strlen(copy) + 1;
    if (size > *k->text) {
        free(copy);
        return NULL;
    }
    *k->text -= size;
    p->text += size;
    return copy;
}

static void set_process(struct known *k, struct known_process *p, const struct agent_process *r, int64_t now_ms)
{
    bool known = p->now.state == AGENT_PROCESS_EXITED && r->state == AGENT_PROCESS_EXITED &&
                 p->now.attempt == r->attempt && p->now.ended_ms;
    int64_t ended_ms = known ? p->now.ended_ms : now_ms;
    clear_process(k, p);
    p->now.attempt = r->attempt;
    p->now.state = r->state;
    if (r->state != AGENT_PROCESS_EXITED)
        return;
    p->now.exit_code = r->exit_code;
    p->now.signal = r->signal;
    p->now.oom = r->oom;
    p->now.ended_ms = ended_ms;
    p->now.message = keep_text(k, p, r->message, KNOWN_MESSAGE_MAX, false);
    p->now.last_lines = keep_text(k, p, r->last_lines, KNOWN_LAST_LINES_MAX, true);
}

// Returns the index of the process of a rank, or the index where it belongs.
static size_t place_of(const struct known *k, int32_t rank)
{
    size_t low = 0, high = k->n_processes;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (k->processes[mid].now.rank < rank)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct known_process *find(const struct known *k, int32_t rank)
{
    size_t i = place_of(k, rank);
    return i < k->n_processes && k->processes[i].now.rank == rank ? &k->processes[i] : NULL;
}

static struct known_process *need(struct known *k, int32_t rank, struct err *err)
{
    struct known_process *p = find(k, rank);
    if (p)
        return p;
    if (k->n_processes == REPORT_PROCESSES_MAX) {
        err_set(err, ERR_LIMIT, "group %s: more than %d processes in a pod", k->group, REPORT_PROCESSES_MAX);
        return NULL;
    }
    size_t i = place_of(k, rank);
    k->processes = xrealloc(k->processes, k->n_processes + 1, sizeof *k->processes);
    memmove(&k->processes[i + 1], &k->processes[i], (k->n_processes++ - i) * sizeof *k->processes);
    k->processes[i] = (struct known_process){.now = {.rank = rank}};
    return &k->processes[i];
}

// The command was followed or refused. An answer to an earlier command does not count for it.
static void answered(struct known *k, uint8_t command, int32_t attempt)
{
    if (k->sent == command && k->sent_attempt <= attempt)
        k->sent = 0;
}

// A HELLO contains everything that the agent has. Everything else does not exist.
static int on_hello(struct known *k, const struct decoded_report *r, int64_t now_ms, struct err *err)
{
    struct known before = *k;
    for (size_t i = 0; i < before.n_processes; i++)
        clear_texts(&before, &before.processes[i]);
    k->processes = NULL;
    k->n_processes = 0;
    for (size_t i = 0; i < r->n_processes && err->code == 0; i++) {
        const struct agent_process *said = &r->processes[i];
        const struct known_process *old = find(&before, said->rank);
        struct known_process *p = need(k, said->rank, err);
        if (!p)
            break;
        if (old && p->text == 0)
            p->now = old->now; // keeps the time when it ended
        set_process(k, p, said, now_ms);
    }
    forget_processes(&before);
    if (r->attempt != k->attempt || r->state != AGENT_IDLE)
        clear_error(k);
    k->attempt = r->attempt;
    k->state = r->state;
    k->sent = 0;
    set_slow(k, r->slow);
    return err->code;
}

static void on_prepared(struct known *k, const struct decoded_report *r, int64_t now_ms)
{
    answered(k, RECORD_PREPARE, r->attempt);
    if (r->attempt < k->attempt || (r->attempt == k->attempt && k->state == AGENT_RUNNING))
        return; // it runs already: the command came twice
    forget_processes(k);
    k->attempt = r->attempt;
    k->state = r->error ? AGENT_IDLE : AGENT_PREPARED;
    if (r->error)
        set_error(k, r->error, now_ms);
    else
        clear_error(k);
    k->taken_port = r->taken_port;
}

static void runs(struct known *k, int32_t attempt)
{
    k->attempt = MAX(k->attempt, attempt);
    k->state = AGENT_RUNNING;
}

static int on_started(struct known *k, const struct decoded_report *r, int64_t now_ms, struct err *err)
{
    answered(k, RECORD_START, r->attempt);
    answered(k, RECORD_RESTART, r->attempt);
    if (r->attempt < k->attempt)
        return 0;
    runs(k, r->attempt);
    clear_error(k);
    set_slow(k, r->slow);
    for (size_t i = 0; i < r->n_processes; i++) {
        const struct known_process *old = find(k, r->processes[i].rank);
        if (old && (old->now.attempt > r->processes[i].attempt ||
                    (old->now.attempt == r->processes[i].attempt && old->now.state == AGENT_PROCESS_EXITED)))
            continue; // it has ended meanwhile
        struct known_process *p = need(k, r->processes[i].rank, err);
        if (!p)
            return err->code;
        set_process(k, p, &r->processes[i], now_ms);
    }
    for (size_t i = 0; !r->processes_told && i < k->n_processes; i++)
        if (k->processes[i].now.state == AGENT_PROCESS_STARTING)
            k->processes[i].now.state = AGENT_PROCESS_RUNNING;
    return 0;
}

static int on_exited(struct known *k, const struct decoded_report *r, int64_t now_ms, struct err *err)
{
    const struct agent_process *said = &r->processes[0];
    const struct known_process *old = find(k, said->rank);
    answered(k, RECORD_START, said->attempt);
    answered(k, RECORD_RESTART, said->attempt);
    if (old ? old->now.attempt > said->attempt : said->attempt < k->attempt)
        return 0; // this is about an earlier start of the process
    struct known_process *p = need(k, said->rank, err);
    if (!p)
        return err->code;
    if (said->attempt > k->attempt || k->state == AGENT_PREPARED)
        runs(k, said->attempt);
    set_process(k, p, said, now_ms);
    return 0;
}

static void on_stopped(struct known *k, const struct decoded_report *r)
{
    answered(k, RECORD_STOP, r->attempt);
    if (r->attempt < k->attempt)
        return;
    forget_processes(k);
    clear_error(k);
    k->attempt = r->attempt;
    k->state = AGENT_IDLE;
}

static void on_refused(struct known *k, const struct decoded_report *r, int64_t now_ms)
{
    if (k->sent != r->command || (r->group && k->sent_attempt != r->attempt))
        return; // a later command still waits for its answer
    k->sent = 0;
    set_error(k, r->error, now_ms);
}

int known_report(struct known *k, const struct decoded_report *r, int64_t now_ms, struct err *err)
{
    switch (r->type) {
    case RECORD_HELLO:
        return on_hello(k, r, now_ms, err);
    case RECORD_PREPARED:
        on_prepared(k, r, now_ms);
        return 0;
    case RECORD_STARTED:
        return on_started(k, r, now_ms, err);
    case RECORD_EXITED:
        return on_exited(k, r, now_ms, err);
    case RECORD_STOPPED:
        on_stopped(k, r);
        return 0;
    default:
        on_refused(k, r, now_ms);
        return 0;
    }
}

void known_sent(struct known *k, uint8_t type, int32_t attempt)
{
    k->sent = type;
    k->sent_attempt = attempt;
}

void known_lost(struct known *k)
{
    k->sent = 0;
}

bool known_idle(const struct known *k)
{
    return k->state == AGENT_IDLE && !k->sent;
}

void known_facts(const struct known *k, struct arena *a, struct agent_facts *ret)
{
    struct agent_process *processes = arena_array(a, k->n_processes, sizeof *processes);
    for (size_t i = 0; i < k->n_processes; i++) {
        const struct agent_process *now = &k->processes[i].now;
        processes[i] = *now;
        processes[i].message = now->message ? arena_strdup(a, now->message) : "";
        processes[i].last_lines = now->last_lines ? arena_strdup(a, now->last_lines) : "";
    }
    ret->state = k->state;
    ret->attempt = k->attempt;
    ret->sent = k->sent;
    ret->sent_attempt = k->sent ? k->sent_attempt : 0;
    ret->error = arena_strdup(a, k->error);
    ret->error_ms = k->error_ms;
    ret->slow = k->slow ? arena_strdup(a, k->slow) : NULL;
    ret->taken_port = k->taken_port;
    ret->processes = processes;
    ret->n_processes = k->n_processes;
}
