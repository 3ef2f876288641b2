// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/stats_report.h"

#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "operator/proxy/transfer_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_SHOWN = 64 }; // most ranks of a method by delay, and as many by errors

static bool was_called(const struct stats_method *m)
{
    return m->in_flight || m->results || m->errors;
}

// JSON

// The ranks with the longest delays come first, then those with most errors.
static int by_errors(const void *pa, const void *pb)
{
    const struct stats_rank *a = *(const struct stats_rank *const *)pa, *b = *(const struct stats_rank *const *)pb;
    if (a->behind_us != b->behind_us)
        return a->behind_us < b->behind_us ? 1 : -1;
    if (a->errors != b->errors)
        return a->errors < b->errors ? 1 : -1;
    return a < b ? -1 : 1;
}

static void write_rank(const struct stats_rank *r, uint32_t rank, struct json_writer *w)
{
    writer_print(w, NULL, "{'rank':%" PRId64 ",'last':%" PRId64 ",'behindMicros':%" PRId64 ",'errors':%" PRId64 "}",
                 (int64_t)rank, (int64_t)r->last, (int64_t)r->behind_us, (int64_t)r->errors);
}

static void write_ranks(const struct stats *s, const struct stats_method *m, struct json_writer *w)
{
    _cleanup_(free_p) const struct stats_rank **ranks = xcalloc((size_t)s->world + 1, sizeof *ranks);
    size_t n = 0, behind = 0, errors = 0;
    for (uint32_t i = 0; m->ranks && i < s->world; i++)
        if (m->ranks[i].last || m->ranks[i].errors)
            ranks[n++] = &m->ranks[i];
    if (n)
        qsort(ranks, n, sizeof *ranks, by_errors);
    writer_list(w, "ranks");
    for (size_t i = 0; i < n; i++) {
        bool shown = behind < RANKS_SHOWN || (ranks[i]->errors && errors++ < RANKS_SHOWN);
        behind++;
        if (shown)
            write_rank(ranks[i], (uint32_t)(ranks[i] - m->ranks), w);
    }
    writer_list_end(w);
}

static void write_method(const struct stats *s, const struct stats_method *m, struct json_writer *w)
{
    writer_object(w, NULL);
    writer_str(w, "name", m->name[0] ? m->name : STATS_OTHER);
    writer_i64(w, "results", (int64_t)m->results);
    writer_i64(w, "errors", (int64_t)m->errors);
    writer_i64(w, "inFlight", m->in_flight);
    writer_i64(w, "bytesIn", (int64_t)m->bytes_in);
    writer_i64(w, "bytesOut", (int64_t)m->bytes_out);
    writer_i64(w, "micros", (int64_t)m->us);
    writer_list(w, "buckets");
    for (unsigned i = 0; i <= STATS_BUCKETS; i++)
        writer_i64(w, NULL, (int64_t)m->buckets[i]);
    writer_list_end(w);
    writer_i64(w, "compared", (int64_t)m->compared);
    writer_i64(w, "behindMicros", (int64_t)m->behind_us);
    write_ranks(s, m, w);
    writer_object_end(w);
}

void stats_report_group(const struct group *g, struct buf *out)
{
    const struct stats *s = &g->stats;
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    group_names_write(g, &w);
    if (s->common->replicas)
        writer_raw(&w, "replicas", s->common->replicas, strlen(s->common->replicas));
    writer_i64(&w, "worldSize", g->world);
    writer_i64(&w, "nowMicros", clock_mono_us(s->common->clock));
    writer_list(&w, "boundsMicros");
    for (unsigned i = 0; i < STATS_BUCKETS; i++)
        writer_i64(&w, NULL, stats_bounds[i]);
    writer_list_end(&w);
    writer_list(&w, "methods");
    for (uint32_t i = 0; i < s->n; i++)
        write_method(s, s->methods[i], &w);
    if (was_called(&s->other))
        write_method(s, &s->other, &w);
    writer_list_end(&w);
    transfer_progress_write(g, &w);
    writer_object_end(&w);
    buf_append(out, buf_str(&w.buf), w.buf.len);
}

// Metrics

struct exposition {
    const struct router *router;
    struct buf *out;
    struct stats_method rest; // the sum of all methods without metrics of their own
};

typedef void (*put_fn)(struct buf *out, const char *labels, const struct stats_method *m);

static void add(struct stats_method *to, const struct stats_method *m)
{
    to->results += m->results;
    to->errors += m->errors;
    to->in_flight += m->in_flight;
    to->bytes_in += m->bytes_in;
    to->bytes_out += m->bytes_out;
    to->us += m->us;
    to->behind_us += m->behind_us;
    for (unsigned i = 0; i <= STATS_BUCKETS; i++)
        to->buckets[i] += m->buckets[i];
}

static const struct stats_method *method_at(const struct stats *s, uint32_t i)
{
    return i < s->n ? s->methods[i] : &s->other;
}

static void sum_rest(struct exposition *e)
{
    void *g;
    for (size_t i = 0; map_next(&e->router->by_uid, &i, NULL, &g);) {
        const struct stats *s = &((const struct group *)g)->stats;
        for (uint32_t k = 0; k <= s->n; k++)
            if (!method_at(s, k)->in_series)
                add(&e->rest, method_at(s, k));
    }
}

// Names of objects and methods contain no character that must be escaped (call_head.h).
static void put_group(struct exposition *e, const struct group *g, put_fn put)
{
    char labels[512];
    for (uint32_t k = 0; k <= g->stats.n; k++) {
        const struct stats_method *m = method_at(&g->stats, k);
        if (!m->in_series)
            continue;
        snprintf(labels, sizeof labels, "namespace=\"%s\",group=\"%s\",method=\"%s\"", g->ns, g->name, m->name);
        put(e->out, labels, m);
    }
}

static void put_family(struct exposition *e, const char *name, const char *type, const char *help, put_fn put)
{
    void *g;
    buf_printf(e->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
    for (size_t i = 0; map_next(&e->router->by_uid, &i, NULL, &g);)
        put_group(e, g, put);
    if (was_called(&e->rest))
        put(e->out, "namespace=\"\",group=\"\",method=\"" STATS_OTHER "\"", &e->rest);
}

static void put_calls(struct buf *out, const char *labels, const struct stats_method *m)
{
    buf_printf(out, "cadre_calls_total{%s,result=\"ok\"} %" PRIu64 "\n", labels, m->results);
    buf_printf(out, "cadre_calls_total{%s,result=\"error\"} %" PRIu64 "\n", labels, m->errors);
}

static void put_in_flight(struct buf *out, const char *labels, const struct stats_method *m)
{
    buf_printf(out, "cadre_calls_in_flight{%s} %" PRIu32 "\n", labels, m->in_flight);
}

static void put_bytes(struct buf *out, const char *labels, const struct stats_method *m)
{
    buf_printf(out, "cadre_call_bytes_total{%s,direction=\"in\"} %" PRIu64 "\n", labels, m->bytes_in);
    buf_printf(out, "cadre_call_bytes_total{%s,direction=\"out\"} %" PRIu64 "\n", labels, m->bytes_out);
}

static void put_seconds(struct buf *out, uint64_t us)
{
    buf_printf(out, "%" PRIu64 ".%06" PRIu64 "\n", us / 1000000, us % 1000000);
}

static void put_behind(struct buf *out, const char *labels, const struct stats_method *m)
{
    buf_printf(out, "cadre_call_last_rank_seconds_total{%s} ", labels);
    put_seconds(out, m->behind_us);
}

static void put_durations(struct buf *out, const char *labels, const struct stats_method *m)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < STATS_BUCKETS; i++) {
        n += m->buckets[i];
        buf_printf(out, "cadre_call_duration_seconds_bucket{%s,le=\"%g\"} %" PRIu64 "\n", labels,
                   (double)stats_bounds[i] / 1e6, n);
    }
    n += m->buckets[STATS_BUCKETS];
    buf_printf(out, "cadre_call_duration_seconds_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n", labels, n);
    buf_printf(out, "cadre_call_duration_seconds_sum{%s} ", labels);
    put_seconds(out, m->us);
    buf_printf(out, "cadre_call_duration_seconds_count{%s} %" PRIu64 "\n", labels, n);
}

void stats_report_metrics(const struct router *router, struct buf *out)
{
    struct exposition e = {.router = router, .out = out};
    sum_rest(&e);
    put_family(&e, "cadre_call_bytes_total", "counter", "Bytes of arguments in and results out.", put_bytes);
    put_family(&e, "cadre_call_duration_seconds", "histogram", "Time from a call to its answer.", put_durations);
    put_family(&e, "cadre_call_last_rank_seconds_total", "counter",
               "Time from the median rank's answer to the last answer of a call.", put_behind);
    put_family(&e, "cadre_calls_in_flight", "gauge", "Calls without an answer yet.", put_in_flight);
    put_family(&e, "cadre_calls_total", "counter", "Calls that were answered.", put_calls);
}
