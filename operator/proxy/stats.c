// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/stats.h"

#include "common/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S ((int64_t)1000000)

const int64_t stats_bounds[STATS_BUCKETS] = {50,    100,   200,    500,    1000,   2000,   5000,
                                             10000, 20000, 50000,  100000, 200000, 500000, 1 * S,
                                             2 * S, 5 * S, 10 * S, 30 * S, 60 * S, 300 * S};

static void name_method(struct stats *s, struct stats_method *m, const char *name)
{
    snprintf(m->name, sizeof m->name, "%s", name);
    m->in_series = s->common->n_series < STATS_SERIES_MAX;
    s->common->n_series += m->in_series;
}

static void end_method(struct stats *s, struct stats_method *m)
{
    s->common->n_series -= m->in_series;
    free(m->ranks);
}

void stats_init(struct stats *s, struct stats_common *common)
{
    *s = (struct stats){.common = common};
}

void stats_done(struct stats *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        end_method(s, s->methods[i]);
        free(s->methods[i]);
    }
    end_method(s, &s->other);
    map_done(&s->by_name);
}

void stats_world(struct stats *s, uint32_t world)
{
    if (s->world == world)
        return;
    s->world = world;
    for (uint32_t i = 0; i < s->n; i++)
        free(TAKE_PTR(s->methods[i]->ranks));
    free(TAKE_PTR(s->other.ranks));
}

// The key of the method. This runs for each call of a role, so it does not use snprintf().
static const char *name_of(const char *role, const char *method, char out[STATS_NAME_SIZE])
{
    if (!*role)
        return method;
    size_t n = strlen(role);
    memcpy(out, role, n);
    out[n] = '.';
    memcpy(out + n + 1, method, strlen(method) + 1);
    return out;
}

static struct stats_method *find(struct stats *s, const char *name)
{
    if (s->recent && strcmp(s->recent->name, name) == 0)
        return s->recent;
    struct stats_method *m = map_get(&s->by_name, name);
    s->recent = m ? m : s->recent;
    return m ? m : &s->other;
}

struct stats_method *stats_find(struct stats *s, const char *role, const char *method)
{
    char name[STATS_NAME_SIZE];
    return find(s, name_of(role, method, name));
}

struct stats_method *stats_add(struct stats *s, const char *role, const char *method)
{
    char out[STATS_NAME_SIZE];
    const char *name = name_of(role, method, out);
    struct stats_method *m = find(s, name);
    if (m != &s->other || s->n == STATS_METHODS_MAX)
        return m;
    m = xcalloc(1, sizeof *m);
    name_method(s, m, name);
    s->methods[s->n++] = m;
    map_set(&s->by_name, name, m);
    return m;
}

static int64_t now_us(const struct stats_call *c)
{
    struct stats_common *common = c->stats->common;
    if (!common->now_us)
        common->now_us = clock_mono_us(common->clock);
    return common->now_us;
}

static struct stats_rank *rank_of(const struct stats_call *c, uint32_t rank)
{
    struct stats_method *m = c->method;
    if (rank >= c->stats->world)
        return NULL;
    if (!m->ranks)
        m->ranks = xcalloc(c->stats->world, sizeof *m->ranks);
    return &m->ranks[rank];
}

void stats_begin(struct stats_call *c, struct stats *s, struct stats_method *m)
{
    *c = (struct stats_call){.stats = s, .method = m, .error_rank = -1};
    c->begun_us = now_us(c);
    m->in_flight++;
}

void stats_become(struct stats_call *c, struct stats_method *m)
{
    c->method->in_flight--;
    c->method = m;
    m->in_flight++;
}

void stats_answer(struct stats_call *c, uint32_t rank, uint32_t n, uint32_t left)
{
    if (n < 2 || !c->stats)
        return;
    if (n - left == (n + 1) / 2)
        c->half_us = now_us(c);
    if (left)
        return;
    struct stats_rank *r = rank_of(c, rank);
    c->last_us = now_us(c);
    uint64_t behind = (uint64_t)(c->last_us - c->half_us);
    c->method->compared++;
    c->method->behind_us += behind;
    if (r) {
        r->last++;
        r->behind_us += behind;
    }
}

static unsigned bucket_of(int64_t us)
{
    unsigned from = 0, to = STATS_BUCKETS;
    while (from < to) {
        unsigned mid = (from + to) / 2;
        if (us <= stats_bounds[mid])
            to = mid;
        else
            from = mid + 1;
    }
    return from;
}

void stats_end(struct stats_call *c)
{
    struct stats_method *m = c->method;
    if (!c->stats)
        return;
    int64_t us = (c->last_us ? c->last_us : now_us(c)) - c->begun_us;
    struct stats_rank *failed = c->error_rank >= 0 ? rank_of(c, (uint32_t)c->error_rank) : NULL;
    if (!m->name[0]) // the first call that counts as STATS_OTHER
        name_method(c->stats, m, STATS_OTHER);
    m->in_flight--;
    m->results += !c->failed;
    m->errors += c->failed;
    m->bytes_in += c->bytes_in;
    m->bytes_out += c->bytes_out;
    m->us += (uint64_t)us;
    m->buckets[bucket_of(us)]++;
    if (failed)
        failed->errors++;
    c->stats = NULL;
}
