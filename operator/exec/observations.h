// SPDX-License-Identifier: Apache-2.0
// The memory of one group (struct gang_memory) and everything that it owns. The executor writes what it learns, and the
// next decision reads it.
#pragma once

#include "common/base/clock.h"
#include "operator/reconcile/group_reconcile.h"

struct observations {
    struct gang_memory memory;
    struct arena needs;     // contains memory.needs
    struct arena refusal;   // contains the texts of the refusal
    struct arena contended; // contains memory.contended
    char *master;           // owns memory.master
    uint64_t seed;          // for the jitter
    bool keeps_pod;         // keep the pod of the dry run in memory.dry_run_pod
    int64_t seen_ms;        // time of the last decision
    struct clock_watch watch;
};

void observations_init(struct observations *n, uint64_t seed);
void observations_done(struct observations *n);

// Call this before each decision. If somebody has set the clock since the last one, forward or back, the noted times
// move with it. Otherwise a wait of seconds would last for hours, or would not happen.
void observations_time(struct observations *n, int64_t wall_ms, int64_t mono_ms);
// Call this after each decision. Notes what the plan waits for, and the rendezvous that it gives to a group on bundles.
// The next plan avoids the nodes that this plan names as contended. If this plan gives the gang back, the next one
// waits, longer each time.
void observations_planned(struct observations *n, const struct plan *p, int64_t now_ms);
// Notes that the API server accepted the dry run of this action. Unless it is a further dry run, it also keeps the
// constraints of the resulting pod. Returns an error if that pod cannot be decoded.
int observations_dry_run_passed(struct observations *n, const struct action *a, const char *pod_json, size_t len,
                                struct err *err);
void observations_dry_run_refused(struct observations *n, uint64_t hash, const char *message);
// Notes that the API server refused to create an object. `reason` is a constant of reason.h and is not copied.
void observations_refused(struct observations *n, int32_t incarnation, const char *reason, const char *message,
                          int64_t now_ms);
// Notes that a dry run was refused for a cause that may change without the spec, for example a quota or a policy. It is
// not a verdict on the spec.
void observations_dry_run_forbidden(struct observations *n, uint64_t hash, int32_t incarnation, const char *reason,
                                    const char *message, int64_t now_ms);
// Returns true if a bound gang had trouble and it is over: the pause after the last refusal has passed, and the plan
// does not create again what was refused, for example the Service.
bool observations_calm(const struct observations *n, const struct plan *p, int64_t now_ms);
// Notes that all pods of the gang are bound as planned. It forgets the trouble on the way, but not that the dry run of
// a changed spec is forbidden.
void observations_bound(struct observations *n);
// Notes that the pods are Ready since `since_ms`. It does the same as observations_bound(), but keeps `given_back` for
// some minutes. Pods that become Ready and fail again and again are then created again more and more slowly.
void observations_ready(struct observations *n, int64_t since_ms, int64_t now_ms);
