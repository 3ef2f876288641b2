// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/metrics.h"

#include "common/base/err.h"
#include "common/base/map.h"
#include "common/base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct family {
    char *name, *help;
    enum metric_type type;
    const double *buckets;
    int n_buckets;
    struct metric **series;
    size_t n_series;
    bool sorted;
};

struct metric {
    struct family *family;
    char *labels;
    double value; // for a histogram: the sum
    uint64_t count;
    // For a histogram: one per bucket, not cumulative. Values above the last bucket are only in `count`.
    uint64_t *counts;
};

struct collector {
    void (*fn)(void *ctx);
    void *ctx;
};

struct metrics {
    struct map families; // name -> family
    struct map series;   // name{labels} -> metric
    struct collector *collectors;
    size_t n_collectors;
    void (*appendix)(void *ctx, struct buf *out);
    void *appendix_ctx;
};

struct metrics *metrics_new(void)
{
    return xcalloc(1, sizeof(struct metrics));
}

static void family_free(struct family *f)
{
    for (size_t i = 0; i < f->n_series; i++) {
        free(f->series[i]->labels);
        free(f->series[i]->counts);
        free(f->series[i]);
    }
    free(f->series);
    free(f->name);
    free(f->help);
    free(f);
}

void metrics_free(struct metrics *m)
{
    if (!m)
        return;
    size_t i = 0;
    void *f;
    while (map_next(&m->families, &i, NULL, &f))
        family_free(f);
    map_done(&m->families);
    map_done(&m->series);
    free(m->collectors);
    free(m);
}

static struct family *family_get(struct metrics *m, enum metric_type type, const char *name, const char *help)
{
    struct family *f = map_get(&m->families, name);
    if (!f) {
        f = xcalloc(1, sizeof *f);
        f->name = xstrdup(name);
        f->help = xstrdup(help);
        f->type = type;
        map_set(&m->families, name, f);
    }
    assert(f->type == type);
    return f;
}

static struct metric *series_get(struct metrics *m, enum metric_type type, const char *name, const char *help,
                                 const char *labels, const double *buckets, int n_buckets)
{
    _cleanup_(free_p) char *key = xasprintf("%s{%s}", name, labels);
    struct metric *s = map_get(&m->series, key);
    if (s)
        return s;
    struct family *f = family_get(m, type, name, help);
    f->buckets = buckets;
    f->n_buckets = n_buckets;
    s = xcalloc(1, sizeof *s);
    s->family = f;
    s->labels = xstrdup(labels);
    if (type == METRIC_HISTOGRAM)
        s->counts = xcalloc((size_t)n_buckets, sizeof *s->counts);
    f->series = xrealloc(f->series, f->n_series + 1, sizeof(struct metric *));
    f->series[f->n_series++] = s;
    f->sorted = false;
    map_set(&m->series, key, s);
    return s;
}

struct metric *metrics_counter(struct metrics *m, const char *name, const char *help, const char *labels)
{
    return series_get(m, METRIC_COUNTER, name, help, labels, NULL, 0);
}

struct metric *metrics_gauge(struct metrics *m, const char *name, const char *help, const char *labels)
{
    return series_get(m, METRIC_GAUGE, name, help, labels, NULL, 0);
}

struct metric *metrics_histogram(struct metrics *m, const char *name, const char *help, const char *labels,
                                 const double *buckets, int n_buckets)
{
    return series_get(m, METRIC_HISTOGRAM, name, help, labels, buckets, n_buckets);
}

void metric_add(struct metric *m, double v)
{
    if (m)
        m->value += v;
}

void metric_set(struct metric *m, double v)
{
    m->value = v;
}

void metric_observe(struct metric *m, double v)
{
    const struct family *f = m->family;
    m->value += v;
    m->count++;
    for (int i = 0; i < f->n_buckets; i++)
        if (v <= f->buckets[i]) {
            m->counts[i]++;
            break;
        }
}

double metric_value(const struct metric *m)
{
    return m->family->type == METRIC_HISTOGRAM ? (double)m->count : m->value;
}

// Writes text for HELP, or for a label value in quotes.
static void put_escaped(struct buf *b, const char *s, bool quoted)
{
    for (; *s; s++) {
        if (*s == '\n')
            buf_puts(b, "\\n");
        else if (*s == '\\' || (quoted && *s == '"'))
            buf_printf(b, "\\%c", *s);
        else
            buf_putc(b, *s);
    }
}

void metrics_label(struct buf *labels, const char *key, const char *value)
{
    buf_printf(labels, "%s%s=\"", labels->len ? "," : "", key);
    put_escaped(labels, value, true);
    buf_putc(labels, '"');
}

void metrics_on_collect(struct metrics *m, void (*fn)(void *ctx), void *ctx)
{
    m->collectors = xrealloc(m->collectors, m->n_collectors + 1, sizeof *m->collectors);
    m->collectors[m->n_collectors++] = (struct collector){fn, ctx};
}

void metrics_off_collect(struct metrics *m, void (*fn)(void *ctx), void *ctx)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n_collectors; i++)
        if (m->collectors[i].fn != fn || m->collectors[i].ctx != ctx)
            m->collectors[kept++] = m->collectors[i];
    m->n_collectors = kept;
}

void metrics_appendix(struct metrics *m, void (*fn)(void *ctx, struct buf *out), void *ctx)
{
    m->appendix = fn;
    m->appendix_ctx = ctx;
}

// Writes the shortest text that reads back as the same number.
static void put_number(struct buf *b, double v)
{
    if (isnan(v) || isinf(v)) {
        buf_puts(b, isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
        return;
    }
    if (v == floor(v) && fabs(v) < 1e15) {
        buf_printf(b, "%.0f", v);
        return;
    }
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    buf_puts(b, text);
}

static void put_sample(struct buf *b, const struct metric *s, const char *suffix, const char *extra_label, double v)
{
    buf_printf(b, "%s%s", s->family->name, suffix);
    if (*s->labels || *extra_label)
        buf_printf(b, "{%s%s%s}", s->labels, *s->labels && *extra_label ? "," : "", extra_label);
    buf_putc(b, ' ');
    put_number(b, v);
    buf_putc(b, '\n');
}

static void put_histogram(struct buf *b, const struct metric *s)
{
    uint64_t below = 0;
    struct buf le = BUF_INIT(64);
    for (int i = 0; i < s->family->n_buckets; i++) {
        below += s->counts[i];
        buf_reset(&le);
        buf_puts(&le, "le=\"");
        put_number(&le, s->family->buckets[i]);
        buf_putc(&le, '"');
        put_sample(b, s, "_bucket", buf_str(&le), (double)below);
    }
    buf_done(&le);
    put_sample(b, s, "_bucket", "le=\"+Inf\"", (double)s->count);
    put_sample(b, s, "_sum", "", s->value);
    put_sample(b, s, "_count", "", (double)s->count);
}

static int by_labels(const void *a, const void *b)
{
    return strcmp((*(struct metric *const *)a)->labels, (*(struct metric *const *)b)->labels);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct family *const *)a)->name, (*(struct family *const *)b)->name);
}

static void put_family(struct buf *b, struct family *f)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    if (!f->sorted)
        qsort(f->series, f->n_series, sizeof(struct metric *), by_labels);
    f->sorted = true;
    buf_printf(b, "# HELP %s ", f->name);
    put_escaped(b, f->help, false);
    buf_printf(b, "\n# TYPE %s %s\n", f->name, types[f->type]);
    for (size_t i = 0; i < f->n_series; i++) {
        if (f->type == METRIC_HISTOGRAM)
            put_histogram(b, f->series[i]);
        else
            put_sample(b, f->series[i], "", "", f->series[i]->value);
    }
}

int metrics_write(struct metrics *m, struct buf *out)
{
    for (size_t i = 0; i < m->n_collectors; i++)
        m->collectors[i].fn(m->collectors[i].ctx);
    _cleanup_(free_p) struct family **families = xcalloc(m->families.used, sizeof *families);
    size_t i = 0, n = 0;
    void *f;
    while (map_next(&m->families, &i, NULL, &f))
        families[n++] = f;
    qsort(families, n, sizeof *families, by_name);
    for (i = 0; i < n; i++)
        put_family(out, families[i]);
    if (m->appendix)
        m->appendix(m->appendix_ctx, out);
    return out->over ? ERR_LIMIT : 0;
}

void metrics_rest_observe(void *metrics_rest, const char *method, int http_status, int64_t micros)
{
    static const double buckets[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}; // client-go's
    const struct metrics_rest *rest = metrics_rest;
    struct buf labels = BUF_INIT(1024);
    char code[16] = "<error>";
    if (http_status)
        snprintf(code, sizeof code, "%d", http_status);
    metrics_label(&labels, "code", code);
    metrics_label(&labels, "host", rest->host);
    metrics_label(&labels, "method", method);
    metric_add(metrics_counter(rest->metrics, "rest_client_requests_total",
                               "Number of HTTP requests, partitioned by status code, method, and host.",
                               buf_str(&labels)),
               1);
    buf_reset(&labels);
    metrics_label(&labels, "host", rest->host);
    metrics_label(&labels, "verb", method);
    metric_observe(metrics_histogram(rest->metrics, "rest_client_request_duration_seconds",
                                     "Request latency in seconds. Broken down by verb, and host.", buf_str(&labels),
                                     buckets, ARRAY_LEN(buckets)),
                   (double)micros / 1e6);
    buf_done(&labels);
}
