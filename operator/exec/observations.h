// SPDX-License-Identifier: Apache-2.0
// The memory of one group (struct gang_memory) with what it owns: written by the executor as it learns, read by the
// next decision.
#pragma once

#include "common/base/clock.h"
#include "operator/reconcile/group_reconcile.h"

struct observations {
    struct gang_memory memory;
    struct arena needs;     // of memory.needs
    struct arena refusal;   // of the refusal's texts
    struct arena contended; // of memory.contended
    char *master;           // memory.master
    uint64_t seed;          // of the jitter
    bool keeps_pod;         // memory.dry_run_pod is wanted
    int64_t seen_ms;        // the time of the last decision
    struct clock_watch watch;
};

void observations_init(struct observations *n, uint64_t seed);
void observations_done(struct observations *n);

// Before each decision. A clock that was set since the last one, back or forward, takes the notes of times with it, or
// what waits for seconds would wait for hours, or not at all.
void observations_time(struct observations *n, int64_t wall_ms, int64_t mono_ms);
// After each decision: what it waits for, and the rendezvous that it gives to a group on bundles.
void observations_planned(struct observations *n, const struct plan *p);
// The dry run of the pod with this hash: what the API server made of it (may fail to decode), or why it refused.
int observations_dry_run_ok(struct observations *n, uint64_t hash, const char *pod_json, size_t len, struct err *err);
// The dry run of this action has passed: as that, or where it is a further one only that it did.
int observations_dry_run_passed(struct observations *n, const struct action *a, const char *pod_json, size_t len,
                                struct err *err);
void observations_dry_run_refused(struct observations *n, uint64_t hash, const char *message);
// A creation was refused; `reason` is one of reason.h and not copied.
void observations_refused(struct observations *n, int32_t incarnation, const char *reason, const char *message,
                          int64_t now_ms);
// As both: the dry run was refused for what may change without the spec (a quota, a policy), which is no verdict on it.
void observations_dry_run_forbidden(struct observations *n, uint64_t hash, int32_t incarnation, const char *reason,
                                    const char *message, int64_t now_ms);
// The plan gives the gang back: wait longer each time before the next one.
void observations_rolled_back(struct observations *n, const struct plan *p, int64_t now_ms);
// The next plan avoids the nodes that the plan names.
void observations_shun(struct observations *n, const struct plan *p);
// The gang is bound as planned: forget the trouble on the way, but not that the dry run of a changed spec is forbidden.
void observations_bound(struct observations *n);
// Its pods are Ready since then. The same, but how often there was trouble is forgotten only after a while: what
// becomes Ready and fails again and again is made again ever more slowly.
void observations_ready(struct observations *n, int64_t since_ms, int64_t now_ms);
