// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/dryruns.h"

#include "common/base/list.h"
#include "common/base/map.h"
#include "common/base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct waiter {
    struct waiter *next;
    dryruns_fn fn;
    void *ctx;
};

struct dryrun {
    struct list link; // in dryruns.answers, oldest first
    char *key;
    char *json; // NULL = no answer yet
    size_t len;
    int64_t fresh_until_ms;
    bool forgotten; // dryruns_forget() was called while it was in progress
    struct waiter *waiters, **last;
};

struct dryruns {
    const struct clock *clock;
    struct map by_key;   // key -> struct dryrun
    struct list answers; // of struct dryrun
    int n_answers;
};

static char *key_of(const struct object *owner, uint64_t hash)
{
    return xasprintf("%s/%s/%016" PRIx64, kind_info(owner->kind)->plural, owner->meta.ns, hash);
}

static void dryrun_free(struct dryrun *r)
{
    free(r->key);
    free(r->json);
    free(r);
}

static void drop_answer(struct dryruns *d, struct dryrun *r)
{
    list_remove(&r->link);
    d->n_answers--;
    map_del(&d->by_key, r->key);
    dryrun_free(r);
}

struct dryruns *dryruns_new(const struct clock *clock)
{
    struct dryruns *d = xcalloc(1, sizeof *d);
    d->clock = clock;
    list_init(&d->answers);
    return d;
}

void dryruns_forget(struct dryruns *d)
{
    void *value;
    while (!list_empty(&d->answers))
        drop_answer(d, CONTAINER_OF(d->answers.next, struct dryrun, link));
    for (size_t i = 0; map_next(&d->by_key, &i, NULL, &value);)
        ((struct dryrun *)value)->forgotten = true;
}

void dryruns_free(struct dryruns *d)
{
    void *value;
    if (!d)
        return;
    dryruns_forget(d);
    for (size_t i = 0; map_next(&d->by_key, &i, NULL, &value);)
        dryrun_free(value);
    map_done(&d->by_key);
    free(d);
}

static bool answer(struct dryruns *d, const struct object *owner, const struct action *a, struct observations *n)
{
    struct err err = ERR_INIT;
    _cleanup_(free_p) char *key = key_of(owner, a->hash);
    struct dryrun *r = map_get(&d->by_key, key);
    if (!r || !r->json)
        return false;
    if (r->fresh_until_ms <= clock_mono_ms(d->clock)) {
        drop_answer(d, r);
        return false;
    }
    return observations_dry_run_passed(n, a, r->json, r->len, &err) == 0;
}

bool dryruns_answer(struct dryruns *d, const struct object *owner, const struct plan *p, struct observations *n)
{
    bool any = false;
    for (size_t i = 0; i < p->n; i++)
        any = (p->actions[i].kind == ACTION_DRY_RUN && answer(d, owner, &p->actions[i], n)) || any;
    return any;
}

bool dryruns_join(struct dryruns *d, const struct object *owner, uint64_t hash, dryruns_fn fn, void *ctx)
{
    char *key = key_of(owner, hash);
    struct dryrun *r = map_get(&d->by_key, key);
    if (r && r->json) // the caller wants a new dry run even if an answer is known
        drop_answer(d, TAKE_PTR(r));
    if (!r) {
        r = xcalloc(1, sizeof *r);
        r->key = key;
        r->last = &r->waiters;
        map_set(&d->by_key, key, r);
        return false;
    }
    free(key);
    struct waiter *w = xcalloc(1, sizeof *w);
    *w = (struct waiter){.fn = fn, .ctx = ctx};
    *r->last = w;
    r->last = &w->next;
    return true;
}

static void keep(struct dryruns *d, struct dryrun *r, const struct kube_response *response)
{
    if (d->n_answers == DRYRUNS_MAX)
        drop_answer(d, CONTAINER_OF(d->answers.next, struct dryrun, link));
    r->json = memcpy(xmalloc(response->len + 1), response->body, response->len);
    r->len = response->len;
    r->fresh_until_ms = clock_mono_ms(d->clock) + DRYRUNS_FRESH_MS;
    list_append(&d->answers, &r->link);
    d->n_answers++;
}

// A waiter may call dryruns_join() inside its callback.
void dryruns_tell(struct dryruns *d, const struct object *owner, uint64_t hash, const struct kube_response *response,
                  const struct err *err)
{
    static const struct err none = {0};
    _cleanup_(free_p) char *key = key_of(owner, hash);
    struct dryrun *r = map_get(&d->by_key, key);
    if (!r || r->json)
        return; // this dry run was made alone, after an equal one was refused
    struct waiter *next, *waiters = TAKE_PTR(r->waiters);
    bool verdict = err->code == ERR_INVALID || err->code == ERR_FORBIDDEN;
    bool usable = response && !r->forgotten;
    if (usable && response->len <= DRYRUNS_ANSWER_MAX) {
        keep(d, r, response);
    } else {
        map_del(&d->by_key, r->key);
        dryrun_free(r);
    }
    for (struct waiter *w = waiters; w; w = next) {
        next = w->next;
        if (usable || (!response && !verdict))
            w->fn(w->ctx, response, err);
        else
            w->fn(w->ctx, NULL, &none);
        free(w);
    }
}
