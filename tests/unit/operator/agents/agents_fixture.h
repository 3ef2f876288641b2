// SPDX-License-Identifier: Apache-2.0
// A registry of agents with a few connections to one pod.
#pragma once

#include "common/base/buf.h"
#include "operator/agents/agents.h"
#include "tests/unit/clock_fake.h"

enum { CONNECTIONS = 3 };

struct connection {
    struct connected_agent *agent;
    uint8_t type; // of the last command
    char body[256];
    int fails; // sending fails with this code
};

struct fixture {
    struct clock_fake clock;
    struct agents *agents;
    struct connection connections[CONNECTIONS];
    struct arena arena;
    int changes;
    char changed[64]; // the object of the last change
    struct buf exits, printed;
    struct buf gpus; // "GROUP RANK JSON\n" for each report of GPUs
};

#define POD                                                                           \
    (struct agent_identity)                                                           \
    {                                                                                 \
        .ns = "ml", .group = "g", .pod = "g-0-0", .pod_uid = "pod-uid", .node = "n1", \
    }
#define HELLO(groups) "{\"role\":\"agent\",\"version\":1,\"program\":\"cadre-agent 0\",\"groups\":[" groups "]}"
#define GROUP "\"group\":\"group-uid\""

int fixture_setup(void **state);
int fixture_teardown(void **state);

// The actions of the owners of connections. The functions without an error argument must succeed.
int join_as(struct fixture *f, int connection, const struct agent_identity *id, const char *hello, struct err *err);
void join(struct fixture *f, int connection, const char *hello); // as POD
void leave(struct fixture *f, int connection);
int give(struct fixture *f, int connection, uint8_t type, const char *body, struct err *err);
void say(struct fixture *f, uint8_t type, const char *body); // on connection 0

const struct agent_facts *facts_of(struct fixture *f, const char *group);
const struct agent_facts *facts(struct fixture *f);         // of group-uid
void command(struct fixture *f, uint8_t type, int attempt); // sends it to POD for group-uid
void expect_process(const struct agent_facts *facts, size_t i, int rank, int attempt, enum agent_process_state state);
