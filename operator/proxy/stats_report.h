// SPDX-License-Identifier: Apache-2.0
// The stats of calls as documents: JSON of one group (docs/observe.md, group.stats), with a transfer of weights to it,
// and metrics of all groups.
#pragma once

#include "operator/proxy/router_state.h"

void stats_report_group(const struct group *g, struct buf *out);
// Families of the text format 0.0.4, with the labels namespace, group and method. What has no series of its own is in
// one of the method "other" without a group.
void stats_report_metrics(const struct router *r, struct buf *out);
