// SPDX-License-Identifier: Apache-2.0
// Keeps every WorkerGroup as its spec asks: listens to the stores, keeps the cluster's accounting, and runs snapshot ->
// plan -> execution for each group whose world has changed.
#ifndef CADRE_EXEC_GROUP_CONTROLLER_H
#define CADRE_EXEC_GROUP_CONTROLLER_H

#include "common/base/loop.h"
#include "operator/kube/client.h"
#include "operator/runtime/metrics.h"
#include "operator/runtime/recorder.h"
#include "operator/runtime/store.h"

struct group_controller;

struct group_controller_options {
    struct kube_client *client;
    struct store *pods, *nodes, *services, *groups; // the controller subscribes to them
    struct recorder *recorder;
    struct metrics *metrics;
    const struct clock *clock;
    uint64_t seed;
};

// Follows the stores from now on; decides nothing before group_controller_start() (caches synced, leading).
struct group_controller *group_controller_new(struct loop *loop, const struct group_controller_options *options);
void group_controller_start(struct group_controller *c);
void group_controller_stop(struct group_controller *c); // begins nothing new
bool group_controller_idle(const struct group_controller *c);
// Only when idle, or after the client is gone (which ends what is in flight); the stores must not change any more.
void group_controller_free(struct group_controller *c);

#endif
