// SPDX-License-Identifier: Apache-2.0
#include "worker/host/rank_watch.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/collective/star.h"

// rank_watch_end() waits while `busy` is true.
static bool set_busy(struct rank_watch *w, bool busy)
{
    pthread_mutex_lock(&w->mutex);
    bool goes_on = !w->ended;
    w->busy = busy && goes_on;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    return goes_on;
}

static void on_broken(void *ctx)
{
    struct rank_watch *w = ctx;
    pthread_mutex_lock(&w->mutex);
    w->broken = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

// Call this without the mutex: on_broken() may need it.
static void forget(struct rank_watch *w, struct star *star)
{
    if (!star)
        return;
    star_free(star);
    arena_done(&w->memory);
}

static void forget_lost(struct rank_watch *w)
{
    pthread_mutex_lock(&w->mutex);
    struct star *star = TAKE_PTR(w->star);
    pthread_mutex_unlock(&w->mutex);
    forget(w, star);
    pthread_mutex_lock(&w->mutex);
    w->broken = false;
    pthread_mutex_unlock(&w->mutex);
}

// Lets rank_watch_end() cancel the star. Returns false if rank_watch_end() was called.
static bool set_agreeing(struct rank_watch *w, struct star *star)
{
    pthread_mutex_lock(&w->mutex);
    bool goes_on = !w->ended;
    w->agreeing = star;
    pthread_mutex_unlock(&w->mutex);
    return goes_on;
}

static int agree(struct rank_watch *w, struct star *star, struct err *err)
{
    const struct err none = ERR_INIT;
    if (!set_agreeing(w, star))
        star_cancel(star);
    int r = star_agree(star, &none, err);
    if (!set_agreeing(w, NULL))
        r = err_set(err, ERR_CANCELED, "the host ends");
    return r;
}

// All processes of these ranks compute the same number, even those that start later. No other rendezvous has it.
static uint64_t number_of(const struct rank_watch_members *who)
{
    return str_hash("watch", 5) ^ str_hash((const char *)who->ranks, (size_t)who->n * sizeof *who->ranks);
}

static int meet(struct rank_watch *w, struct rendezvous *rv, const struct rank_watch_members *who, int64_t limit_ms,
                struct err *err)
{
    int index = 0;
    while (index < who->n && who->ranks[index] != rendezvous_rank(rv))
        index++;
    if (index >= who->n || who->n < 2)
        return err_set(err, ERR_INVALID, "rank %d is not among them, or alone", rendezvous_rank(rv));
    struct rendezvous_list list = {.id = number_of(who),
                                   .first = who->ranks[0],
                                   .n = who->n,
                                   .index = index,
                                   .limit_ms = limit_ms,
                                   .canceled = &w->canceled};
    _cleanup_(free_p) int *links = xcalloc((size_t)list.n, sizeof *links);
    int r = rendezvous_meet(rv, &list, links, err);
    if (r < 0)
        return r;
    const char **names = arena_array(&w->memory, (size_t)list.n, sizeof *names);
    for (int i = 0; i < list.n; i++)
        names[i] = arena_printf(&w->memory, "rank %d", who->ranks[i]);
    struct star *star = star_new(&(struct star_config){.index = list.index,
                                                       .n = list.n,
                                                       .names = names,
                                                       .links = links,
                                                       .limit_ms = limit_ms,
                                                       .silence_ms = w->silence_ms});
    r = agree(w, star, err);
    if (r < 0) {
        forget(w, star);
    } else {
        star_watch(star, on_broken, w);
        w->star = star;
    }
    return r;
}

int rank_watch_meet(struct rank_watch *w, struct rendezvous *rv, const struct rank_watch_members *who, int64_t limit_ms,
                    struct err *err)
{
    if (!set_busy(w, true)) // the rendezvous may be gone
        return err_set(err, ERR_CANCELED, "the host ends");
    forget_lost(w);
    int r = meet(w, rv, who, limit_ms, err);
    set_busy(w, false);
    return r;
}

int rank_watch_wait(struct rank_watch *w, struct err *err)
{
    char reason[STAR_REASON_SIZE];
    int r = 0;
    pthread_mutex_lock(&w->mutex);
    while (!w->broken && !w->ended)
        pthread_cond_wait(&w->changed, &w->mutex);
    bool goes_on = w->busy = !w->ended;
    pthread_mutex_unlock(&w->mutex);
    if (goes_on && star_broken(w->star, reason))
        r = err_set(err, ERR_GONE, "%s", reason);
    set_busy(w, false);
    return r;
}

void rank_watch_end(struct rank_watch *w)
{
    atomic_store(&w->canceled, true);
    pthread_mutex_lock(&w->mutex);
    w->ended = true;
    if (w->agreeing)
        star_cancel(w->agreeing);
    pthread_cond_broadcast(&w->changed);
    while (w->busy)
        pthread_cond_wait(&w->changed, &w->mutex);
    struct star *star = TAKE_PTR(w->star);
    pthread_mutex_unlock(&w->mutex);
    forget(w, star);
}
