// SPDX-License-Identifier: Apache-2.0
// Metrics of what this process uses. They come from /proc, and are read only when metrics are collected:
// process_resident_memory_bytes, process_virtual_memory_bytes, process_cpu_seconds_total, process_open_fds,
// process_max_fds, process_start_time_seconds. cadre_loop_turn_seconds says how long the turns of the loop take.
#pragma once

#include "common/base/loop.h"
#include "operator/runtime/metrics.h"

void process_metrics(struct metrics *m, struct loop *loop); // call loop_observe(loop, NULL, NULL) to end it
