// SPDX-License-Identifier: Apache-2.0
// The surroundings of a group controller in tests: stores that the test fills, and a client that the test answers.
#pragma once

#include "operator/exec/group_controller.h"
#include "tests/unit/support/store_json.h"
#include "tests/unit/support/stub_client.h"

struct controller_case {
    struct loop *loop;
    struct kube_client *client;
    struct metrics *metrics;
    struct store *stores[KIND_COUNT]; // the stores that a controller follows
    struct recorder *recorder;
    struct group_controller *controller;
};

// controller_case_init() makes everything but the controller. The other function makes the controller with these
// agents, this router and node n1. NULL = none.
void controller_case_init(struct controller_case *c);
void controller_case_start(struct controller_case *c, struct agents *agents, struct router *router);
// Ends as the operator does: no new decisions, then the client ends its requests, then the controller and the rest are
// freed.
void controller_case_stop(struct controller_case *c);
void controller_case_done(struct controller_case *c);

void controller_case_put_node(struct controller_case *c, const char *name);
