// SPDX-License-Identifier: Apache-2.0
// What is known about one group in a pod: reports go in, facts come out. Pure.
#pragma once

#include "operator/agents/agent_report.h"

enum {
    KNOWN_MESSAGE_MAX = 1024,    // bytes of one message, what is behind is cut off
    KNOWN_LAST_LINES_MAX = 4096, // the same of last lines, from the front
};

struct known_process {
    struct agent_process now; // its texts are ours
    size_t text;              // bytes of them
};

struct known {
    char group[REPORT_GROUP_MAX + 1];
    enum agent_state state;
    int32_t attempt;
    uint8_t sent; // and not answered
    int32_t sent_attempt;
    char *error; // NULL = nothing
    int64_t error_ms;
    char *slow; // NULL = nothing
    int32_t taken_port;
    struct known_process *processes; // by rank
    size_t n_processes;
    size_t *text; // borrowed: bytes of texts that may still be kept in this pod
};

struct known *known_new(const char *group, size_t *text);
void known_free(struct known *k);

// A report of this group, or a REFUSED that names none. ERR_LIMIT: too many processes.
int known_report(struct known *k, const struct report *r, int64_t now_ms, struct err *err);
void known_sent(struct known *k, uint8_t type, int32_t attempt);
void known_lost(struct known *k); // the connection: what was sent will not be answered
// Nothing of it would be missed.
bool known_idle(const struct known *k);
// All but what is told of the connection.
void known_facts(const struct known *k, struct arena *a, struct agent_facts *ret);
