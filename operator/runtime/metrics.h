// SPDX-License-Identifier: Apache-2.0
// Prometheus metrics. They have the names that Go operators use (controller_runtime_*, workqueue_*, rest_client_*,
// leader_election_master_status, process_*), so that existing dashboards work. Our own names begin with cadre_. The
// number of series is bounded: labels contain no object names. Only the appendix may contain some, and its owner limits
// their number. Every registry has the family process_*.
#pragma once

#include "common/base/buf.h"

#include <stdint.h>

struct metrics;
struct metric; // one series: a family with fixed label values; it lives as long as its registry

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

// Registers the series on first use, and returns the same one afterwards. `labels` is `key="value",key2="value2"` or
// "". Use metrics_label() for values that are not constants. The buckets of a histogram are seconds, ascending. They
// must stay valid, and be the same for the whole family. A name keeps its type.
struct metric *metrics_counter(struct metrics *m, const char *name, const char *help, const char *labels);
struct metric *metrics_gauge(struct metrics *m, const char *name, const char *help, const char *labels);
struct metric *metrics_histogram(struct metrics *m, const char *name, const char *help, const char *labels,
                                 const double *buckets, int n_buckets);
void metric_add(struct metric *m, double v); // NULL: does nothing
void metric_set(struct metric *m, double v); // also for a counter, if it copies a total from elsewhere
void metric_observe(struct metric *m, double v);
double metric_value(const struct metric *m); // of a counter or gauge; for a histogram, its count

// Appends `key="value"` with the value escaped. A comma precedes it unless it is the first.
void metrics_label(struct buf *labels, const char *key, const char *value);

// Sets a function that is called before each exposition. It fills gauges that are cheaper to compute than to keep.
void metrics_on_collect(struct metrics *m, void (*fn)(void *ctx), void *ctx);
void metrics_off_collect(struct metrics *m, void (*fn)(void *ctx), void *ctx);
// Sets the function that appends its own families to each exposition, as whole lines of the text format. NULL = none.
void metrics_appendix(struct metrics *m, void (*fn)(void *ctx, struct buf *out), void *ctx);
// Writes text format 0.0.4: families sorted by name, then the appendix. Returns 0 or ERR_LIMIT.
int metrics_write(struct metrics *m, struct buf *out);

// Counts rest_client_requests_total{code,host,method} and rest_client_request_duration_seconds{host,verb}. The function
// fits kube_client_options.observe, with a `struct metrics_rest *` as context. If there was no answer, the code is
// "<error>".
struct metrics_rest {
    struct metrics *metrics;
    const char *host; // of the API server, "10.0.0.1:6443"
};
void metrics_rest_observe(void *metrics_rest, const char *method, int http_status, int64_t micros);
