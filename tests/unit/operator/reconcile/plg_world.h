// SPDX-License-Identifier: Apache-2.0
// A small Kubernetes in memory for one PlacementGroup, ml/sim: its pods and Service, some nodes, and what the API
// server, kube-scheduler and the kubelets do with them as time passes. Every change is a numbered entry of a log, from
// which the mirrors of an operator and of its standby are filled, early or late.
#ifndef CADRE_TESTS_PLG_WORLD_H
#define CADRE_TESTS_PLG_WORLD_H

#include "common/base/rand.h"
#include "operator/api/node.h"
#include "operator/api/placementgroup.h"
#include "operator/api/pod.h"
#include "tests/unit/operator/reconcile/sim_log.h"

enum { PLG_NODES = 4, PLG_PODS = 64, PLG_BUNDLES = 8 };

struct plg_spec {
    const char *strategy, *pod_per;
    int32_t bundles; // of one GPU each
    int version;     // of the template
};

struct plg_pod {
    const struct pod *base; // as created
    const struct pod *now;  // as the API server shows it; NULL: the slot is free
    enum pod_phase phase;
    const char *node;
    int64_t created_ms, asked_ms, gone_ms; // asked_ms: for its deletion; gone_ms: when the kubelet will be done with it
};

struct plg_node {
    const struct object *now; // NULL: removed
    char name[8];
    bool ready;
    int64_t changed_ms;
    int32_t gpus;
    bool contended; // the room is taken in a way that the operator does not see
};

struct plg_world {
    struct rand rand;
    int64_t now_ms;
    struct arena arena; // names and the like, until the end
    struct plg_spec spec;
    int64_t generation;
    const struct object *plg, *service;
    const char *status; // JSON, NULL: never written
    struct plg_pod pods[PLG_PODS];
    struct plg_node nodes[PLG_NODES];
    int32_t quota; // of pods
    bool used;     // some WorkerGroup names it
    bool calm;     // nothing goes wrong any more, and all is done at once
    int births;    // of pods
    struct sim_log log;
};

void plg_init(struct plg_world *w, uint64_t seed, const struct plg_spec *spec);
void plg_done(struct plg_world *w);
bool plg_chance(struct plg_world *w, int percent);
void plg_pass(struct plg_world *w, int64_t ms); // time passes; scheduler, kubelets and garbage collectors act

// The API server. Answers are 0, or as the real one's: ERR_EXISTS, ERR_NOT_FOUND, ERR_CONFLICT, ERR_FORBIDDEN.
int plg_create_pod(struct plg_world *w, const char *body, bool dry_run, struct err *err);
int plg_delete_pod(struct plg_world *w, const char *name, const char *uid, int64_t grace_s);
int plg_create_service(struct plg_world *w, const char *body);
int plg_patch_status(struct plg_world *w, const char *body);
struct plg_pod *plg_pod(struct plg_world *w, const char *name); // NULL if there is none

// What people and fate do.
void plg_edit(struct plg_world *w, const struct plg_spec *spec);
void plg_delete_service(struct plg_world *w);
void plg_fail(struct plg_world *w, struct plg_pod *p);
void plg_set_node(struct plg_world *w, struct plg_node *n, bool ready); // adds it if it is not there
void plg_remove_node(struct plg_world *w, struct plg_node *n);

bool plg_live(const struct plg_pod *p);                             // exists and has not ended
bool plg_going(const struct plg_world *w, const struct plg_pod *p); // will be gone soon

#endif
