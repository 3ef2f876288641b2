// SPDX-License-Identifier: Apache-2.0
// The reports of other replicas: which agents and processes they see. Agents have the UID of their pod as key;
// processes that take calls have their group and rank (docs/protocol.md, "Replicas"). When the connection of a replica
// ends, its report is forgotten. No sockets; one thread.
#pragma once

#include "common/base/clock.h"
#include "common/base/err.h"
#include "operator/agents/agents.h"

enum {
    REPLICA_REPORTS_MAX = 16,
    REPLICA_REPORT_BODY_MAX = 1 << 20,     // bytes of one record
    REPLICA_REPORT_ITEMS_MAX = 128 * 1024, // pods, and also groups, of one replica
    REPLICA_REPORT_RANGES_MAX = 8 * 1024   // of one group
};

struct replica_reports;
struct reporting_replica; // the connection of one replica

struct replica_reports_config {
    const struct clock *clock; // borrowed
    // The reports about this pod, or about the processes of this group, have changed. `owner` is the object that the
    // pod belongs to. `of_placementgroup`: it is a PlacementGroup. It is called inside the functions below, and may
    // call only functions that read.
    void (*agent)(void *ctx, const char *pod_uid, const char *ns, const char *owner, bool of_placementgroup);
    void (*ranks)(void *ctx, const char *group_uid);
    void (*joined)(void *ctx); // a replica has connected; may be NULL
    void *ctx;
};

struct replica_reports *replica_reports_new(const struct replica_reports_config *config);
void replica_reports_free(struct replica_reports *s); // every replica must have left; accepts NULL

int replica_reports_join(struct replica_reports *s, const char *name, struct reporting_replica **ret,
                         struct err *err);                                          // ERR_LIMIT
void replica_reports_leave(struct replica_reports *s, struct reporting_replica *g); // frees it
void replica_reports_alive(struct replica_reports *s, struct reporting_replica *g); // this replica has heard from it
// Takes the body of a REPORT. ERR_INVALID, ERR_LIMIT: it has taken nothing.
int replica_reports_take(struct replica_reports *s, struct reporting_replica *g, const char *body, size_t len,
                         struct err *err);

// Returns the name of a replica to which the agent of this pod is connected, borrowed; NULL = there is none.
const char *replica_reports_agent(const struct replica_reports *s, const char *pod_uid);
// Returns the name of a replica to which all agents of this replica and some others are connected; borrowed, NULL =
// there is none.
const char *replica_reports_sees_more(const struct replica_reports *s, const struct agents *a);
// Fills in the attempts of processes that take calls at other replicas, by rank, where `members` is 0.
void replica_reports_members(const struct replica_reports *s, const char *group_uid, int32_t *members, size_t n);
// Returns the connected replicas, at most `max` of them, and their number.
size_t replica_reports_connected(const struct replica_reports *s, struct connected_peer *ret, size_t max);
