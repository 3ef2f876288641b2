// SPDX-License-Identifier: Apache-2.0
// Which agents and processes other replicas see: agents by the UID of their pod, processes that take calls by group and
// rank (docs/protocol.md, "Replicas"). When the connection of a replica ends, its report is forgotten. No sockets; one
// thread.
#pragma once

#include "common/base/clock.h"
#include "common/base/err.h"
#include "operator/agents/agents.h"

enum {
    SIGHTINGS_REPLICAS_MAX = 16,
    SIGHTINGS_BODY_MAX = 1 << 20,   // bytes of one record
    SIGHTINGS_MAX = 128 * 1024,     // pods, and groups, of one replica
    SIGHTINGS_RANGES_MAX = 8 * 1024 // of one group
};

struct sightings;
struct sighter; // the connection of one replica

struct sightings_config {
    const struct clock *clock; // borrowed
    // What is said of this pod, or of the processes of this group, has changed. `owner` is the object that the pod
    // belongs to, `shared` where several groups run in its pods. From inside the functions below; may call nothing
    // here but what asks.
    void (*agent)(void *ctx, const char *pod_uid, const char *ns, const char *owner, bool shared);
    void (*ranks)(void *ctx, const char *group_uid);
    void *ctx;
};

struct sightings *sightings_new(const struct sightings_config *config);
void sightings_free(struct sightings *s); // every replica has left; accepts NULL

int sightings_join(struct sightings *s, const char *name, struct sighter **ret, struct err *err); // ERR_LIMIT
void sightings_leave(struct sightings *s, struct sighter *g);                                     // frees it
void sightings_alive(struct sightings *s, struct sighter *g); // something was heard of it
// The body of a SIGHTINGS. ERR_INVALID, ERR_LIMIT: nothing of it was taken.
int sightings_hear(struct sightings *s, struct sighter *g, const char *body, size_t len, struct err *err);

// The name of a replica to which the agent of this pod is connected, borrowed; NULL = none.
const char *sightings_agent(const struct sightings *s, const char *pod_uid);
// The name of a replica to which all agents are connected that are here, and more; borrowed, NULL = none.
const char *sightings_sees_more(const struct sightings *s, const struct agents *a);
// Attempts of processes that take calls at other replicas, by rank, where `members` has none.
void sightings_members(const struct sightings *s, const char *group_uid, int32_t *members, size_t n);
// Replicas that are connected; returns how many.
size_t sightings_witnesses(const struct sightings *s, struct agent_witness *ret, size_t max);
