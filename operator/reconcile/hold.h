// SPDX-License-Identifier: Apache-2.0
// What the steps of one decision about a PlacementGroup share. Private to operator/reconcile.
#ifndef CADRE_RECONCILE_HOLD_H
#define CADRE_RECONCILE_HOLD_H

#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/reservation.h"

enum hold_condition { HOLD_ACCEPTED, HOLD_SCHEDULED, HOLD_READY, HOLD_FAILED, HOLD_CONDITIONS };

struct hold_trial {
    uint64_t hash;  // of what its verdict depends on
    int32_t bundle; // the first of that shape
};

struct hold {
    const struct placementgroup_view *v;
    const struct placementgroup *plg;
    struct arena *a;
    struct plan *plan;
    struct bundles bundles;
    uint64_t template_hash;    // of what the pods are made from, but for the bundles
    struct hold_trial *trials; // of what the API server is asked about: a pod with a bundle of each shape
    size_t n_trials;
    struct reservation reservation;
    // The status that the decision leads to. A condition that is not set keeps the generation that it was set for.
    struct condition conditions[HOLD_CONDITIONS];
    int32_t incarnation;
};

// hold.c: the conditions, and the writes and events that take the object there
void hold_init(struct hold *h);
void hold_set(struct hold *h, enum hold_condition which, enum condition_status status, const char *reason,
              const char *message);
void hold_wait(struct hold *h, const char *reason, const char *message);           // Scheduled and Ready
const struct condition *hold_old(const struct hold *h, enum hold_condition which); // NULL if never set
bool hold_was(const struct hold *h, enum hold_condition which);                    // the status says True
// Adds the status write and its events to the plan if anything differs. `now`: at once and before everything else;
// otherwise passing states may wait a moment for what comes next.
void hold_commit(struct hold *h, bool now);

// Deletes a pod unless that is under way; by force if its node will never confirm.
void hold_delete(struct hold *h, const struct pod *p, int stage);

// holdpods.c: some bundles have no pod
void hold_create(struct hold *h);
// The pods of the present incarnation were never bound all together: they are given back.
void hold_roll_back(struct hold *h, const char *reason, const char *message);
void hold_keep_service(struct hold *h);
// No nodes that exist could ever take the present spec, as Accepted says then, and the plan looks again when they
// change. False: it is worth a try, or not known yet.
bool hold_hopeless(struct hold *h);

// holdtrial.c: the API server's verdict on pods as the spec asks for them
void hold_plan_trials(struct hold *h); // from the template and the bundles
enum hold_verdict { HOLD_OK, HOLD_REFUSED, HOLD_UNKNOWN };
enum hold_verdict hold_judge(struct hold *h); // also said in Accepted
bool hold_tried(const struct hold *h);        // and it is known what a pod of the first shape asks for
bool hold_refused_lately(const struct hold *h);
// Of a trial that was refused for what may change without the spec.
enum hold_verdict hold_forbidden(struct hold *h);
bool hold_forbids_this(const struct hold *h); // such a trial was one of the present spec
bool hold_render(struct hold *h, struct bundlepod *p, const char **ret_json); // false: Accepted says why not

#endif
