// SPDX-License-Identifier: Apache-2.0
// What this process costs, from /proc, read only when metrics are collected: process_resident_memory_bytes,
// process_virtual_memory_bytes, process_cpu_seconds_total, process_open_fds, process_max_fds,
// process_start_time_seconds. Also how long the turns of its loop take: cadre_loop_turn_seconds.
#pragma once

#include "common/base/loop.h"
#include "operator/runtime/metrics.h"

void process_metrics(struct metrics *m, struct loop *loop); // until loop_observe(loop, NULL, NULL)
