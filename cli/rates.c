// SPDX-License-Identifier: Apache-2.0
#include "cli/rates.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <string.h>

enum { BUCKETS_MAX = 64 };

struct histogram {
    int64_t bounds[BUCKETS_MAX], counts[BUCKETS_MAX + 1], sum;
    size_t n; // number of bounds
};

struct late_rank {
    int64_t rank, behind_us, last;
};

struct tally { // of a method, over the replicas
    struct rate rate;
    struct histogram durations;
    struct late_rank *ranks;
    size_t n_ranks;
};

static int64_t grown(int64_t before, int64_t now)
{
    return now >= before ? now - before : now;
}

static int64_t growth(const cJSON *before, const cJSON *now, const char *name)
{
    return grown(document_i64(before, name), document_i64(now, name));
}

static const cJSON *find(const cJSON *list, const char *key, const cJSON *value)
{
    DOCUMENT_FOREACH(v, list)
    if (cJSON_Compare(document_get(v, key), value, true))
        return v;
    return NULL;
}

static int read_bounds(const cJSON *bounds, struct histogram *h, struct err *err)
{
    *h = (struct histogram){0};
    DOCUMENT_FOREACH(v, bounds)
    if (h->n < BUCKETS_MAX)
        h->n += document_integer(v, &h->bounds[h->n]);
    return h->n ? 0 : err_set(err, ERR_INVALID, "this version cannot read the operator's answer to group.stats");
}

static void add_durations(const cJSON *before, const cJSON *now, struct histogram *h)
{
    const cJSON *old = before ? document_get(before, "buckets") : NULL, *o = old ? old->child : NULL;
    size_t i = 0;
    DOCUMENT_FOREACH(v, document_get(now, "buckets"))
    {
        int64_t was = 0, is = 0;
        if (i > h->n || !document_integer(v, &is))
            break;
        document_integer(o, &was);
        h->counts[i++] += grown(was, is);
        h->sum += grown(was, is);
        o = o ? o->next : NULL;
    }
}

// Interpolates in its bucket, as if durations were spread evenly there.
static int64_t quantile(const struct histogram *h, double q)
{
    double want = q * (double)h->sum, below = 0;
    if (!h->sum)
        return -1;
    for (size_t i = 0; i < h->n; i++) {
        double here = (double)h->counts[i];
        int64_t from = i ? h->bounds[i - 1] : 0;
        if (here > 0 && below + here >= want)
            return from + (int64_t)((double)(h->bounds[i] - from) * (want - below) / here);
        below += here;
    }
    return h->n ? h->bounds[h->n - 1] : -1;
}

static struct late_rank *late_rank(struct tally *t, int64_t rank)
{
    size_t i = 0;
    while (i < t->n_ranks && t->ranks[i].rank != rank)
        i++;
    if (i == t->n_ranks)
        t->ranks[t->n_ranks++] = (struct late_rank){.rank = rank};
    return &t->ranks[i];
}

static void add_ranks(const cJSON *before, const cJSON *now, struct arena *a, struct tally *t)
{
    const cJSON *ranks = document_get(now, "ranks"), *old_ranks = document_get(before, "ranks");
    struct late_rank *all = arena_array(a, t->n_ranks + document_count(ranks), sizeof *all);
    if (t->n_ranks)
        memcpy(all, t->ranks, t->n_ranks * sizeof *all);
    t->ranks = all;
    DOCUMENT_FOREACH(rank, ranks)
    {
        const cJSON *old = find(old_ranks, "rank", document_get(rank, "rank"));
        struct late_rank *r = late_rank(t, document_i64(rank, "rank"));
        r->behind_us += growth(old, rank, "behindMicros");
        r->last += growth(old, rank, "last");
    }
}

static void find_slowest(const struct tally *t, struct rate *r)
{
    int64_t most = -1;
    r->slowest = -1;
    for (size_t i = 0; i < t->n_ranks; i++) {
        const struct late_rank *b = &t->ranks[i];
        if (b->last <= 0 || b->behind_us <= most)
            continue;
        most = b->behind_us;
        r->slowest = b->rank;
        r->last = b->last;
        r->behind_us = b->behind_us / b->last;
    }
}

static void add_method(const cJSON *before, const cJSON *now, double seconds, struct arena *a, struct tally *t)
{
    struct rate *r = &t->rate;
    int64_t errors = growth(before, now, "errors"), ended = growth(before, now, "results") + errors;
    r->errors += errors;
    r->ended += ended;
    r->total_errors += document_i64(now, "errors");
    r->in_flight += document_i64(now, "inFlight");
    r->compared += growth(before, now, "compared");
    r->calls += (double)ended / seconds;
    r->bytes += (double)(growth(before, now, "bytesIn") + growth(before, now, "bytesOut")) / seconds;
    add_durations(before, now, &t->durations);
    add_ranks(before, now, a, t);
}

struct tallies {
    struct histogram empty; // with the bounds that all share
    struct tally *items;
    size_t n;
};

static struct tally *tally_of(struct tallies *all, const char *name)
{
    size_t i = 0;
    while (i < all->n && !str_eq(all->items[i].rate.name, name))
        i++;
    if (i == all->n)
        all->items[all->n++] = (struct tally){.rate = {.name = name}, .durations = all->empty};
    return &all->items[i];
}

static int add_span(const struct rates_span *span, struct arena *a, struct tallies *all, struct err *err)
{
    struct histogram bounds;
    int64_t us = document_i64(span->now, "nowMicros") - document_i64(span->before, "nowMicros");
    double seconds = (double)(us > 0 ? us : MAX(span->fallback_us, (int64_t)1)) / 1e6;
    if (read_bounds(document_get(span->now, "boundsMicros"), &bounds, err) < 0)
        return err->code;
    if (all->empty.n && memcmp(&bounds, &all->empty, sizeof bounds) != 0)
        return err_set(err, ERR_INVALID,
                       "the replicas of the operator have different versions, so their durations cannot be added up; "
                       "try again after the rollout");
    all->empty = bounds;
    DOCUMENT_FOREACH(m, document_get(span->now, "methods"))
    {
        const char *name = document_str(m, "name");
        add_method(find(document_get(span->before, "methods"), "name", document_get(m, "name")), m, seconds, a,
                   tally_of(all, name ? name : "?"));
    }
    return 0;
}

int rates_of(const struct rates_span *spans, size_t n_spans, struct arena *a, struct rate **ret, size_t *ret_n,
             struct err *err)
{
    struct tallies all = {0};
    size_t most = 0;
    for (size_t i = 0; i < n_spans; i++)
        most += document_count(document_get(spans[i].now, "methods"));
    all.items = arena_array(a, most, sizeof *all.items);
    for (size_t i = 0; i < n_spans; i++)
        if (add_span(&spans[i], a, &all, err) < 0)
            return err->code;
    *ret = arena_array(a, all.n, sizeof **ret);
    *ret_n = all.n;
    for (size_t i = 0; i < all.n; i++) {
        struct tally *t = &all.items[i];
        t->rate.p50_us = quantile(&t->durations, 0.5);
        t->rate.p99_us = quantile(&t->durations, 0.99);
        find_slowest(t, &t->rate);
        (*ret)[i] = t->rate;
    }
    return 0;
}
