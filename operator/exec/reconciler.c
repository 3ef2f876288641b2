// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/reconciler.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 4 }; // decisions in a row about one object

// Returns how many statuses wait. While the status of this object waits, it returns the largest number since that wait
// began: the number falls as other statuses are written, and that does not mean that this one will not follow.
static int32_t waiting_statuses(const struct reconciler_entry *e)
{
    return MAX(e->most_waiting, e->of->waiting_statuses);
}

static void set_status_wanted(struct reconciler_entry *e, int64_t ms)
{
    int64_t *wanted = &e->observations.memory.status_wanted_ms;
    e->of->waiting_statuses += (ms != 0) - (*wanted != 0);
    *wanted = ms;
    e->most_waiting = ms ? waiting_statuses(e) : 0;
}

static void entry_forget(struct reconciler_entry *e)
{
    if (e->uid)
        waiting_gangs_decided(e->of->options.shared->waiting, e->uid, NULL, 0);
    set_status_wanted(e, 0);
    observations_done(&e->observations);
    free(TAKE_PTR(e->uid));
}

static void entry_free(struct reconciler_entry *e)
{
    entry_forget(e);
    free(e->key);
    free(e);
}

void reconciler_done(struct reconciler *r)
{
    void *value;
    for (size_t i = 0; map_next(&r->map, &i, NULL, &value);)
        entry_free(value);
    map_done(&r->map);
    controller_free(r->controller);
}

void reconciler_wake_key(void *ctx, const char *key)
{
    struct reconciler *r = ctx;
    if (r->started)
        controller_add(r->controller, key);
}

void reconciler_wake(void *ctx, const char *ns, const char *name)
{
    _cleanup_(free_p) char *key = xasprintf("%s/%s", ns, name);
    reconciler_wake_key(ctx, key);
}

void reconciler_wake_object(void *ctx, const struct object *o)
{
    reconciler_wake(ctx, o->meta.ns, o->meta.name);
}

const struct store *reconciler_objects(const struct reconciler *r)
{
    return r->options.shared->executor.stores[r->options.kind];
}

const struct service *reconciler_service(const struct reconciler *r, const char *ns, const char *name)
{
    const struct object *o = store_get(r->options.shared->executor.stores[KIND_SERVICE], ns, name);
    return o && !o->meta.deleted_ms ? service_of(o) : NULL;
}

void reconciler_look(struct reconciler *r)
{
    store_each(reconciler_objects(r), reconciler_wake_object, r);
}

void reconciler_start(struct reconciler *r)
{
    r->started = true;
    reconciler_look(r);
    controller_start(r->controller);
}

void reconciler_stop(struct reconciler *r)
{
    struct map kept = MAP_INIT;
    void *value;
    r->started = false;
    r->term++;
    for (size_t i = 0; map_next(&r->map, &i, NULL, &value);) {
        struct reconciler_entry *e = value;
        if (e->executes)
            map_set(&kept, e->key, e);
        else
            entry_free(e);
    }
    map_done(&r->map);
    r->map = kept;
    controller_stop(r->controller);
}

const struct reconciler_entry *reconciler_find(const struct reconciler *r, const char *key)
{
    const struct reconciler_entry *e = map_get(&r->map, key);
    return e && e->term == r->term && r->started ? e : NULL;
}

static struct reconciler_entry *entry_get(struct reconciler *r, const char *key, const char *uid)
{
    struct reconciler_entry *e = map_get(&r->map, key);
    if (!e) {
        e = xcalloc(1, sizeof *e);
        e->of = r;
        e->key = xstrdup(key);
        e->term = r->term;
        map_set(&r->map, key, e);
    }
    if (!e->uid || !str_eq(e->uid, uid)) {
        entry_forget(e);
        e->uid = xstrdup(uid);
        observations_init(&e->observations, rand_u64(&r->rand));
        e->observations.keeps_pod = r->options.kind == KIND_PLACEMENTGROUP;
    }
    return e;
}

// Returns the word for such an object in log lines.
static const char *word_of(enum kind kind)
{
    return kind == KIND_PLACEMENTGROUP ? "placementgroup" : "group";
}

static void log_plan(const struct reconciler_entry *e, const struct plan *p, struct arena *a)
{
    if (p->n && log_enabled(LOG_DEBUG))
        log_debug("plan", word_of(e->of->options.kind), e->key, "plan", plan_describe(p, a), NULL);
    for (size_t i = 0; i < p->n; i++)
        if (p->actions[i].kind == ACTION_EVENT)
            log_info("group event", word_of(e->of->options.kind), e->key, "reason", p->actions[i].reason, "note",
                     p->actions[i].note, NULL);
}

static void entry_planned(struct reconciler_entry *e, const struct plan *p, int64_t now_ms, struct arena *a)
{
    e->executes = true;
    if (!p->defers_status)
        set_status_wanted(e, 0);
    else
        set_status_wanted(e,
                          e->observations.memory.status_wanted_ms ? e->observations.memory.status_wanted_ms : now_ms);
    waiting_gangs_decided(e->of->options.shared->waiting, e->uid, p, clock_wall_ms(e->of->options.shared->time.clock));
    observations_planned(&e->observations, p, now_ms);
    e->waits_for_port = p->waits_for_port;
    e->requeue_ms = p->requeue_ms;
    e->goes_on = p->requeue_ms == 0 && p->n;
    log_plan(e, p, a);
}

// The plan ended only after its term. A new entry may exist as soon as the key returns to the queue.
static void entry_outlived(struct reconciler_entry *e, struct reconcile_result result)
{
    struct reconciler *r = e->of;
    (void)map_del(&r->map, e->key);
    entry_forget(e);
    controller_finish(r->controller, e->key, result);
    entry_free(e);
}

static void decide(struct reconciler *r, const char *key);

// Objects that have begun continue before others begin. Each of many groups then starts as quickly as the API server
// allows. Otherwise all of them would start at the end.
static void entry_executed(void *ctx, const struct err *err)
{
    struct reconciler_entry *e = ctx;
    struct reconciler *r = e->of;
    bool stale = err->code == ERR_CONFLICT;
    if (err->code && err->code != ERR_CANCELED && !stale) {
        _cleanup_(free_p) char *text =
            xasprintf("a write for a %s failed; the operator tries again", kind_info(r->options.kind)->kind);
        log_warn(text, word_of(r->options.kind), e->key, "error", err->msg, NULL);
    }
    struct reconcile_result result = {err->code, e->requeue_ms};
    if (stale)
        result = (struct reconcile_result){0, EXECUTION_STALE_MS};
    e->executes = false;
    if (e->term != r->term)
        entry_outlived(e, result);
    else if (!err->code && e->goes_on && ++e->rounds < ROUNDS_MAX && r->started)
        decide(r, e->key);
    else
        controller_finish(r->controller, e->key, result);
}

// The object was deleted, or another installation handles it now. It does not return to the queue.
static void forget(struct reconciler *r, const char *key)
{
    struct reconciler_entry *gone = map_del(&r->map, key);
    controller_finish(r->controller, key, (struct reconcile_result){0, -1});
    if (gone) // `key` may be a string of this entry, so it is freed last
        entry_free(gone);
}

static struct gang_view view_of(const struct reconciler_entry *e, const struct object *o, struct arena *a)
{
    const struct controller_shared *s = e->of->options.shared;
    const struct object *const *owned;
    size_t n = store_by_owner(s->executor.stores[KIND_POD], &o->meta, a, &owned);
    const struct pod **pods = arena_array(a, n, sizeof *pods);
    for (size_t i = 0; i < n; i++)
        pods[i] = pod_of(owned[i]);
    return (struct gang_view){.pods = pods,
                              .n_pods = n,
                              .setup = s->setup,
                              .cluster = s->executor.cluster,
                              .line = waiting_gangs_line(s->waiting),
                              .memory = &e->observations.memory,
                              .waiting_statuses = waiting_statuses(e)};
}

static void decide(struct reconciler *r, const char *key)
{
    const struct reconciler_options *x = &r->options;
    struct controller_shared *s = x->shared;
    struct arena a = ARENA_INIT;
    const char *slash = strchr(key, '/'), *ns = arena_strndup(&a, key, (size_t)(slash - key));
    const struct object *o =
        excluded_namespaces_has(s->excluded, ns) ? NULL : store_get(reconciler_objects(r), ns, slash + 1);
    if (!o) {
        arena_done(&a);
        forget(r, key);
        return;
    }
    struct reconciler_entry *e = entry_get(r, key, o->meta.uid);
    struct plan plan;
    observations_time(&e->observations, clock_wall_ms(s->time.clock), clock_mono_ms(s->time.clock));
    struct gang_view gang = view_of(e, o, &a);
    gang.now_ms = decision_time_now(&s->time);
    x->plan(x->ctx, o, &gang, &a, &plan);
    if (dryruns_answer(s->executor.dryruns, o, &plan, &e->observations))
        x->plan(x->ctx, o, &gang, &a, &plan);
    x->note(x->ctx, o, &e->observations, &plan, gang.now_ms);
    entry_planned(e, &plan, gang.now_ms, &a);
    int32_t incarnation =
        o->kind == KIND_WORKERGROUP ? workergroup_of(o)->status.incarnation : placementgroup_of(o)->status.incarnation;
    execution_start(&s->executor, o, incarnation, &a, &plan, &e->observations, entry_executed, e);
}

static void reconcile(void *ctx, const char *key)
{
    struct reconciler *r = ctx;
    struct reconciler_entry *e = map_get(&r->map, key);
    if (e)
        e->rounds = 0;
    decide(r, key);
}

void reconciler_init(struct reconciler *r, struct loop *loop, const struct reconciler_options *options)
{
    *r = (struct reconciler){.options = *options};
    rand_seed(&r->rand, options->seed);
    r->controller = controller_new(
        loop,
        &(struct controller_options){.name = options->kind == KIND_PLACEMENTGROUP ? "placementgroup" : "workergroup",
                                     .reconcile = reconcile,
                                     .ctx = r,
                                     .metrics = options->metrics});
    waiting_gangs_wake_by(options->shared->waiting, options->kind, reconciler_wake, r);
}
