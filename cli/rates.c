// SPDX-License-Identifier: Apache-2.0
#include "cli/rates.h"

#include "common/base/mem.h"

#include <string.h>

enum { BUCKETS_MAX = 64 };

struct histogram {
    int64_t bounds[BUCKETS_MAX], counts[BUCKETS_MAX + 1], sum;
    size_t n; // of bounds
};

static int64_t number(const struct json *v, const char *name)
{
    int64_t n = 0;
    return json_i64(json_get(v, name), &n) ? n : 0;
}

static int64_t grown(int64_t before, int64_t now)
{
    return now >= before ? now - before : now;
}

static int64_t growth(const struct json *before, const struct json *now, const char *name)
{
    return grown(number(before, name), number(now, name));
}

static const struct json *find(const struct json *list, const char *key, const struct json *value)
{
    JSON_FOREACH(v, list) {
        const struct json *m = json_get(v, key);
        if (m && value && m->len == value->len && memcmp(m->text, value->text, m->len) == 0)
            return v;
    }
    return NULL;
}

static void read_histogram(const struct json *bounds, const struct json *before, const struct json *now,
                           struct histogram *h)
{
    const struct json *old = before ? json_get(before, "buckets") : NULL, *o = old ? old->child : NULL;
    size_t i = 0;
    *h = (struct histogram){0};
    JSON_FOREACH(v, bounds)
        if (h->n < BUCKETS_MAX)
            h->n += json_i64(v, &h->bounds[h->n]);
    JSON_FOREACH(v, json_get(now, "buckets")) {
        int64_t was = 0, is = 0;
        if (i > h->n || !json_i64(v, &is))
            break;
        json_i64(o, &was);
        h->counts[i] = grown(was, is);
        h->sum += h->counts[i++];
        o = o ? o->next : NULL;
    }
}

// Between the bounds of its bucket as if durations were spread evenly there.
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

static void find_slowest(const struct json *before, const struct json *now, struct rate *r)
{
    int64_t most = -1;
    r->slowest = -1;
    r->compared = growth(before, now, "compared");
    JSON_FOREACH(rank, json_get(now, "ranks")) {
        const struct json *old = find(json_get(before, "ranks"), "rank", json_get(rank, "rank"));
        int64_t behind = growth(old, rank, "behindMicros"), last = growth(old, rank, "last");
        if (last <= 0 || behind <= most)
            continue;
        most = behind;
        r->slowest = number(rank, "rank");
        r->last = last;
        r->behind_us = behind / last;
    }
}

static void read_rate(const struct json *bounds, const struct json *before, const struct json *now, double seconds,
                      struct arena *a, struct rate *r)
{
    struct histogram h;
    const char *name = json_str(json_get(now, "name"), a);
    read_histogram(bounds, before, now, &h);
    *r = (struct rate){.name = name ? name : "?"};
    r->errors = growth(before, now, "errors");
    r->ended = growth(before, now, "results") + r->errors;
    r->total_errors = number(now, "errors");
    r->in_flight = number(now, "inFlight");
    r->calls = (double)r->ended / seconds;
    r->bytes = (double)(growth(before, now, "bytesIn") + growth(before, now, "bytesOut")) / seconds;
    r->p50_us = quantile(&h, 0.5);
    r->p99_us = quantile(&h, 0.99);
    find_slowest(before, now, r);
}

int rates_of(const struct json *before, const struct json *now, int64_t fallback_us, struct arena *a, struct rate **ret,
             size_t *ret_n, struct err *err)
{
    const struct json *methods = json_get(now, "methods"), *bounds = json_get(now, "boundsMicros");
    int64_t us = number(now, "nowMicros") - number(before, "nowMicros");
    if (!methods || !bounds)
        return err_set(err, ERR_INVALID, "the operator's answer to group.stats is none that is known here");
    struct rate *rates = arena_array(a, json_count(methods), sizeof *rates);
    size_t n = 0;
    JSON_FOREACH(m, methods)
        read_rate(bounds, find(json_get(before, "methods"), "name", json_get(m, "name")), m,
                  (double)(us > 0 ? us : MAX(fallback_us, (int64_t)1)) / 1e6, a, &rates[n++]);
    *ret = rates;
    *ret_n = n;
    return 0;
}
