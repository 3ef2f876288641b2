// SPDX-License-Identifier: Apache-2.0
// Adds sessions, calls and agents to the metrics of the operator.
#pragma once

#include "operator/gateway/gateway.h"
#include "operator/runtime/metrics.h"

struct call_metrics;

// All arguments are borrowed, and must outlive it.
struct call_metrics *call_metrics_new(struct metrics *metrics, struct gateway *gateway, struct agents *agents);
void call_metrics_free(struct call_metrics *c); // accepts NULL
