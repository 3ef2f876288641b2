// SPDX-License-Identifier: Apache-2.0
// Prometheus metrics with the names that Go operators use (controller_runtime_*, workqueue_*, rest_client_*,
// leader_election_master_status, process_*), so that existing dashboards work, and our own cadre_*. Cardinality is
// bounded: labels contain no object names, except in the appendix, whose owner bounds it. Every registry has the family
// process_*.
#pragma once

#include "common/base/buf.h"

#include <stdint.h>

struct metrics;
struct metric; // one series: a family with fixed label values; lives as long as its registry

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

// Registers on first use, returns the same series afterwards. labels: `key="value",key2="value2"` or "" (a value that
// is not a constant goes through metrics_label). The buckets of a histogram are seconds, ascending; they must stay
// valid and be the same for the whole family. A name keeps its type.
struct metric *metrics_counter(struct metrics *m, const char *name, const char *help, const char *labels);
struct metric *metrics_gauge(struct metrics *m, const char *name, const char *help, const char *labels);
struct metric *metrics_histogram(struct metrics *m, const char *name, const char *help, const char *labels,
                                 const double *buckets, int n_buckets);
void metric_add(struct metric *m, double v); // NULL: nothing
void metric_set(struct metric *m, double v); // of a counter too, where it mirrors a total kept elsewhere
void metric_observe(struct metric *m, double v);
double metric_value(const struct metric *m); // counter and gauge; the count of a histogram

// Appends `key="value"` (after a comma, unless it is the first), with the value escaped.
void metrics_label(struct buf *labels, const char *key, const char *value);

// Called before each exposition, to fill gauges that are cheaper to compute than to keep.
void metrics_on_collect(struct metrics *m, void (*fn)(void *ctx), void *ctx);
void metrics_off_collect(struct metrics *m, void (*fn)(void *ctx), void *ctx);
// Who appends families of its own to each exposition, whole lines of the text format; NULL = nobody any more.
void metrics_appendix(struct metrics *m, void (*fn)(void *ctx, struct buf *out), void *ctx);
// Text format 0.0.4, families sorted by name, then the appendix; 0 or ERR_LIMIT.
int metrics_write(struct metrics *m, struct buf *out);

// rest_client_requests_total{code,host,method} and rest_client_request_duration_seconds{host,verb}. Fits
// kube_client_options.observe, with a `struct metrics_rest *` as context. Without an answer the code is "<error>".
struct metrics_rest {
    struct metrics *metrics;
    const char *host; // of the API server, "10.0.0.1:6443"
};
void metrics_rest_observe(void *metrics_rest, const char *method, int http_status, int64_t micros);
