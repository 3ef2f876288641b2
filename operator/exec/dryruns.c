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

struct trial {
    struct list link; // in dryruns.answers, oldest first
    char *key;
    char *json; // NULL = no answer yet
    size_t len;
    int64_t fresh_until_ms;
    bool forgotten; // dryruns_forget() was called while the trial was in progress
    struct waiter *waiters, **last;
};

struct dryruns {
    const struct clock *clock;
    struct map trials;   // key -> struct trial
    struct list answers; // of struct trial
    int n_answers;
};

static char *key_of(const struct object *owner, uint64_t hash)
{
    return xasprintf("%s/%s/%016" PRIx64, kind_info(owner->kind)->plural, owner->meta.ns, hash);
}

static void trial_free(struct trial *t)
{
    free(t->key);
    free(t->json);
    free(t);
}

static void drop_answer(struct dryruns *d, struct trial *t)
{
    list_remove(&t->link);
    d->n_answers--;
    map_del(&d->trials, t->key);
    trial_free(t);
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
        drop_answer(d, CONTAINER_OF(d->answers.next, struct trial, link));
    for (size_t i = 0; map_next(&d->trials, &i, NULL, &value);)
        ((struct trial *)value)->forgotten = true;
}

void dryruns_free(struct dryruns *d)
{
    void *value;
    if (!d)
        return;
    dryruns_forget(d);
    for (size_t i = 0; map_next(&d->trials, &i, NULL, &value);)
        trial_free(value);
    map_done(&d->trials);
    free(d);
}

static bool answer(struct dryruns *d, const struct object *owner, const struct action *a, struct observations *n)
{
    struct err err = ERR_INIT;
    _cleanup_(free_p) char *key = key_of(owner, a->hash);
    struct trial *t = map_get(&d->trials, key);
    if (!t || !t->json)
        return false;
    if (t->fresh_until_ms <= clock_mono_ms(d->clock)) {
        drop_answer(d, t);
        return false;
    }
    return observations_dry_run_passed(n, a, t->json, t->len, &err) == 0;
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
    struct trial *t = map_get(&d->trials, key);
    if (t && t->json) // the caller wants a new trial even if an answer is known
        drop_answer(d, TAKE_PTR(t));
    if (!t) {
        t = xcalloc(1, sizeof *t);
        t->key = key;
        t->last = &t->waiters;
        map_set(&d->trials, key, t);
        return false;
    }
    free(key);
    struct waiter *w = xcalloc(1, sizeof *w);
    *w = (struct waiter){.fn = fn, .ctx = ctx};
    *t->last = w;
    t->last = &w->next;
    return true;
}

static void keep(struct dryruns *d, struct trial *t, const struct kube_response *response)
{
    if (d->n_answers == DRYRUNS_MAX)
        drop_answer(d, CONTAINER_OF(d->answers.next, struct trial, link));
    t->json = memcpy(xmalloc(response->len + 1), response->body, response->len);
    t->len = response->len;
    t->fresh_until_ms = clock_mono_ms(d->clock) + DRYRUNS_FRESH_MS;
    list_append(&d->answers, &t->link);
    d->n_answers++;
}

// A waiter may call dryruns_join() inside its callback.
void dryruns_tell(struct dryruns *d, const struct object *owner, uint64_t hash, const struct kube_response *response,
                  const struct err *err)
{
    static const struct err none = {0};
    _cleanup_(free_p) char *key = key_of(owner, hash);
    struct trial *t = map_get(&d->trials, key);
    if (!t || t->json)
        return; // this trial was made alone, after an equal one was refused
    struct waiter *next, *waiters = TAKE_PTR(t->waiters);
    bool verdict = err->code == ERR_INVALID || err->code == ERR_FORBIDDEN;
    bool usable = response && !t->forgotten;
    if (usable && response->len <= DRYRUNS_ANSWER_MAX) {
        keep(d, t, response);
    } else {
        map_del(&d->trials, t->key);
        trial_free(t);
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
