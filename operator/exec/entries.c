// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/entries.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/exec/executor.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 4 }; // decisions about one object in a row

int32_t entry_crowd(const struct entry *e)
{
    return MAX(e->crowd, e->of->moving);
}

static void set_status_wanted(struct entry *e, int64_t ms)
{
    int64_t *wanted = &e->observations.memory.status_wanted_ms;
    e->of->moving += (ms != 0) - (*wanted != 0);
    *wanted = ms;
    e->crowd = ms ? entry_crowd(e) : 0;
}

static void entry_forget(struct entry *e)
{
    if (e->uid)
        waiting_decided(e->of->waiting, e->uid, NULL, 0);
    set_status_wanted(e, 0);
    observations_done(&e->observations);
    free(TAKE_PTR(e->uid));
}

static void entry_free(struct entry *e)
{
    entry_forget(e);
    free(e->key);
    free(e);
}

void entries_done(struct entries *all)
{
    void *value;
    for (size_t i = 0; map_next(&all->map, &i, NULL, &value);)
        entry_free(value);
    map_done(&all->map);
}

void entries_start(struct entries *all)
{
    all->stopped = false;
}

void entries_stop(struct entries *all)
{
    struct map kept = MAP_INIT;
    void *value;
    all->stopped = true;
    all->term++;
    for (size_t i = 0; map_next(&all->map, &i, NULL, &value);) {
        struct entry *e = value;
        if (e->executes)
            map_set(&kept, e->key, e);
        else
            entry_free(e);
    }
    map_done(&all->map);
    all->map = kept;
}

const struct entry *entries_find(const struct entries *all, const char *key)
{
    const struct entry *e = map_get(&all->map, key);
    return e && e->term == all->term && !all->stopped ? e : NULL;
}

struct entry *entries_get(struct entries *all, const char *key, const char *uid)
{
    struct entry *e = map_get(&all->map, key);
    if (!e) {
        e = xcalloc(1, sizeof *e);
        e->of = all;
        e->key = xstrdup(key);
        e->term = all->term;
        map_set(&all->map, key, e);
    }
    if (!e->uid || !str_eq(e->uid, uid)) {
        entry_forget(e);
        e->uid = xstrdup(uid);
        observations_init(&e->observations, rand_u64(&all->rand));
        e->observations.keeps_pod = all->keeps_pod;
    }
    return e;
}

void entries_forget(struct entries *all, const char *key)
{
    struct entry *gone = map_del(&all->map, key);
    controller_finish(all->controller, key, (struct reconcile_result){0, -1});
    if (gone) // it may own the key
        entry_free(gone);
}

static void decide(struct entries *all, const char *key)
{
    _cleanup_(free_p) char *ns = xasprintf("%.*s", (int)strcspn(key, "/"), key);
    if (territory_left(all->territory, ns))
        entries_forget(all, key);
    else
        all->decide(all->ctx, key);
}

void entries_reconcile(void *ctx, const char *key)
{
    struct entries *all = ctx;
    struct entry *e = map_get(&all->map, key);
    if (e)
        e->rounds = 0;
    decide(all, key);
}

static void log_plan(const struct entry *e, const struct plan *p, struct arena *a)
{
    if (p->n && log_enabled(LOG_DEBUG))
        log_debug("plan", e->of->word, e->key, "plan", plan_describe(p, a), NULL);
    for (size_t i = 0; i < p->n; i++)
        if (p->actions[i].kind == ACTION_EVENT)
            log_info("group event", e->of->word, e->key, "reason", p->actions[i].reason, "note", p->actions[i].note,
                     NULL);
}

void entry_planned(struct entry *e, const struct plan *p, int64_t now_ms, struct arena *a)
{
    e->executes = true;
    if (!p->defers_status)
        set_status_wanted(e, 0);
    else
        set_status_wanted(e,
                          e->observations.memory.status_wanted_ms ? e->observations.memory.status_wanted_ms : now_ms);
    waiting_decided(e->of->waiting, e->uid, p, clock_wall_ms(e->of->clock));
    observations_planned(&e->observations, p);
    e->waits_for_port = p->waits_for_port;
    e->requeue_ms = p->requeue_ms;
    e->goes_on = p->requeue_ms == 0 && p->n;
    log_plan(e, p, a);
}

// Its plan was over only after its term: there may be another entry as soon as the key is given back.
static void entry_outlived(struct entry *e, struct reconcile_result result)
{
    struct entries *all = e->of;
    (void)map_del(&all->map, e->key);
    entry_forget(e);
    controller_finish(all->controller, e->key, result);
    entry_free(e);
}

// What has begun goes on before others begin: each of many groups then starts as quickly as the API server allows,
// instead of all of them at the end.
void entry_executed(void *ctx, const struct err *err)
{
    struct entry *e = ctx;
    struct entries *all = e->of;
    bool stale = err->code == ERR_CONFLICT;
    if (err->code && err->code != ERR_CANCELED && !stale) {
        _cleanup_(free_p) char *text = xasprintf("a write for a %s failed; the operator tries again", all->kind);
        log_warn(text, all->word, e->key, "error", err->msg, NULL);
    }
    struct reconcile_result result = {err->code, e->requeue_ms};
    if (stale)
        result = (struct reconcile_result){0, EXECUTION_STALE_MS};
    e->executes = false;
    if (e->term != all->term)
        entry_outlived(e, result);
    else if (!err->code && e->goes_on && ++e->rounds < ROUNDS_MAX && !all->stopped)
        decide(all, e->key);
    else
        controller_finish(all->controller, e->key, result);
}
