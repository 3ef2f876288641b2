// SPDX-License-Identifier: Apache-2.0
// Prometheus metrics under the names that Go operators use (controller_runtime_*, workqueue_*, rest_client_*,
// leader_election_master_status, process_*), so that existing dashboards work, and our own cadre_*. Cardinality is bounded:
// no label holds an object's name.
#ifndef CADRE_RUNTIME_METRICS_H
#define CADRE_RUNTIME_METRICS_H

#include "common/base/buf.h"

#include <stdint.h>

struct metrics;
struct metric; // one series: a family with fixed label values

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

// Registers on first use, returns the same series afterwards. labels: `key="value",key2="value2"` or "". The buckets of a
// histogram are seconds, ascending.
struct metric *metrics_counter(struct metrics *m, const char *name, const char *help, const char *labels);
struct metric *metrics_gauge(struct metrics *m, const char *name, const char *help, const char *labels);
struct metric *metrics_histogram(struct metrics *m, const char *name, const char *help, const char *labels,
                                 const double *buckets, int n_buckets);
void metric_add(struct metric *m, double v);
void metric_set(struct metric *m, double v);
void metric_observe(struct metric *m, double v);
double metric_value(const struct metric *m); // counter and gauge

// Called before each exposition, to fill gauges that are cheaper to compute than to keep.
void metrics_on_collect(struct metrics *m, void (*fn)(void *ctx), void *ctx);
int metrics_write(struct metrics *m, struct buf *out); // text format 0.0.4, families sorted by name

#endif
