// SPDX-License-Identifier: Apache-2.0
// The GPUs of one pod, as its agent reported them last. Pure.
#pragma once

#include "common/base/buf.h"
#include "common/wire/gpu.h"
#include "operator/agents/facts.h"

struct devices {
    struct arena memory;
    struct gpu *gpus;
    size_t n;
};

void devices_done(struct devices *d);
// Takes the body of a HELLO or a HEARTBEAT. Without the member "gpus", nothing has changed. *ret_changed: other GPUs
// are lost than before, or lost ones have other ranks. ERR_INVALID, ERR_LIMIT: it has taken nothing.
int devices_learn(struct devices *d, const char *body, size_t len, bool *ret_changed, struct err *err);
// Returns the first lost GPU that a rank of this group uses. If there is none, `uuid` is NULL. Strings are copied to
// the arena.
struct agent_gpu devices_lost(const struct devices *d, const char *group_uid, struct arena *a);
bool devices_any_lost(const struct devices *d);
// Returns the JSON list of the GPUs of a rank, without their ranks; "" = it has none.
const char *devices_of_rank(const struct devices *d, const char *group_uid, int32_t rank, struct arena *a);

// Metrics with the names of NVIDIA's DCGM exporter. Each family is written once, for all pods.
enum { DEVICES_FAMILIES = 9 };
void devices_family(int family, struct buf *out); // writes # HELP and # TYPE
// `labels`: of the pod, `namespace="ml",pod="g-0"`.
void devices_series(const struct devices *d, int family, const char *labels, struct buf *out);
