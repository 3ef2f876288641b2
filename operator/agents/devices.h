// SPDX-License-Identifier: Apache-2.0
// The GPUs of one pod, as its agent last reported them. Pure.
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
// The body of a HELLO or a HEARTBEAT; without member "gpus" nothing is new. *ret_changed: others are lost than before,
// or have other ranks. ERR_INVALID, ERR_LIMIT: nothing was taken.
int devices_learn(struct devices *d, const char *body, size_t len, bool *ret_changed, struct err *err);
// The first lost one that a rank of this group has; uuid NULL = none is. Strings are copied to the arena.
struct agent_gpu devices_lost(const struct devices *d, const char *group_uid, struct arena *a);
bool devices_any_lost(const struct devices *d);
// The JSON list of those of a rank, without their ranks; "" = it has none.
const char *devices_of_rank(const struct devices *d, const char *group_uid, int32_t rank, struct arena *a);

// Metrics by the names of NVIDIA's DCGM exporter. Families are written one by one, each for all pods.
enum { DEVICES_FAMILIES = 9 };
void devices_family(int family, struct buf *out); // # HELP, # TYPE
// `labels`: of the pod, `namespace="ml",pod="g-0"`.
void devices_series(const struct devices *d, int family, const char *labels, struct buf *out);
