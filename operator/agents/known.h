// SPDX-License-Identifier: Apache-2.0
// The operator's knowledge about one group in a pod: reports go in, facts come out. Pure.
#pragma once

#include "operator/agents/agent_report.h"

enum {
    KNOWN_MESSAGE_MAX = 1024,    // bytes of a message; the rest is cut off
    KNOWN_LAST_LINES_MAX = 4096, // bytes of last lines; the beginning is cut off
};

struct known_process {
    struct agent_process now; // it owns its texts
    size_t text;              // bytes of these texts
};

struct known {
    char group[REPORT_GROUP_MAX + 1];
    enum agent_state state;
    int32_t attempt;
    uint8_t sent; // the last command without an answer
    int32_t sent_attempt;
    char *error; // NULL = none
    int64_t error_ms;
    char *slow; // NULL = none
    int32_t taken_port;
    struct known_process *processes; // by rank
    size_t n_processes;
    size_t *text; // borrowed: bytes of texts that the pod may still keep
};

struct known *known_new(const char *group, size_t *text);
void known_free(struct known *k);

// Takes a report about this group, or a REFUSED without a group. ERR_LIMIT: too many processes.
int known_report(struct known *k, const struct decoded_report *r, int64_t now_ms, struct err *err);
void known_sent(struct known *k, uint8_t type, int32_t attempt);
void known_lost(struct known *k); // the connection was lost: sent commands get no answer
// Returns true if nothing is lost by forgetting it.
bool known_idle(const struct known *k);
// Sets all facts except those about the connection.
void known_facts(const struct known *k, struct arena *a, struct agent_facts *ret);
