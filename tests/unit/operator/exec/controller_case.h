// SPDX-License-Identifier: Apache-2.0
// What a controller of groups has around it in tests: stores that the test fills, and a client that the test answers.
#pragma once

#include "operator/exec/group_controller.h"
#include "tests/unit/support/store_json.h"
#include "tests/unit/support/stub_client.h"

struct controller_case {
    struct loop *loop;
    struct kube_client *client;
    struct metrics *metrics;
    struct store *stores[KIND_COUNT]; // of what a controller follows
    struct recorder *recorder;
    struct group_controller *controller;
};

// Everything but the controller; then that, with those agents and that router, and node n1. NULL = none.
void controller_case_init(struct controller_case *c);
void controller_case_start(struct controller_case *c, struct agents *agents, struct router *router);
// As the operator ends: no new decisions, then the client ends what is in flight, and the controller goes; then the
// rest.
void controller_case_stop(struct controller_case *c);
void controller_case_done(struct controller_case *c);

void controller_case_put_node(struct controller_case *c, const char *name);
