// SPDX-License-Identifier: Apache-2.0
// The stats of calls as documents: the JSON of one group (docs/observe.md, group.stats), with a transfer of weights to
// it, and the metrics of all groups.
#pragma once

#include "operator/proxy/router_state.h"

void stats_report_group(const struct group *g, struct buf *out);
// Writes metrics in the text format 0.0.4, with the labels namespace, group and method. Methods without metrics of
// their own are added up in the method "other" without a group.
void stats_report_metrics(const struct router *r, struct buf *out);
