// SPDX-License-Identifier: Apache-2.0
// The operator's knowledge about one group in a pod: reports go in, facts come out. Pure.
#pragma once

#include "operator/agents/agent_report.h"

enum {
    REPORTED_MESSAGE_MAX = 1024,    // bytes of a message; the rest is cut off
    REPORTED_LAST_LINES_MAX = 4096, // bytes of last lines; the beginning is cut off
};

struct reported_process {
    struct agent_process now; // it owns its texts
    size_t text;              // bytes of these texts
};

struct reported_group {
    char group[REPORT_GROUP_MAX + 1];
    enum agent_state state;
    int32_t attempt;
    uint8_t sent; // the last command without an answer
    int32_t sent_attempt;
    char *error; // NULL = none
    int64_t error_ms;
    char *slow; // NULL = none
    int32_t taken_port;
    struct reported_process *processes; // by rank
    size_t n_processes;
    size_t *text; // borrowed: bytes of texts that the pod may still keep
};

struct reported_group *reported_group_new(const char *group, size_t *text);
void reported_group_free(struct reported_group *g);

// Takes a report about this group, or a REFUSED without a group. ERR_LIMIT: too many processes.
int reported_group_update(struct reported_group *g, const struct decoded_report *r, int64_t now_ms, struct err *err);
void reported_group_sent(struct reported_group *g, uint8_t type, int32_t attempt);
void reported_group_lost(struct reported_group *g); // the connection was lost: sent commands get no answer
void reported_group_clock_moved(struct reported_group *g, int64_t ms); // somebody set our own clock by this much
// Returns true if nothing is lost by forgetting it.
bool reported_group_idle(const struct reported_group *g);
// Sets all facts except those about the connection.
void reported_group_facts(const struct reported_group *g, struct arena *a, struct agent_facts *ret);
