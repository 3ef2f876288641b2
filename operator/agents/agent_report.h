// SPDX-License-Identifier: Apache-2.0
// The records of an agent, decoded and checked: the bodies of docs/protocol.md ("Agents"). Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"
#include "operator/agents/facts.h"

enum { REPORT_GROUP_MAX = 63, REPORT_PROCESSES_MAX = 1024 };

struct decoded_report {     // about one group; all strings are in the arena of the call
    uint8_t type;           // enum record_type: PREPARED, STARTED, EXITED, STOPPED, REFUSED, or HELLO
    const char *group;      // the UID of the group; NULL: REFUSED, and the agent could not read the command
    int32_t attempt;        // 0 = none yet
    enum agent_state state; // only in HELLO
    const char *error;      // PREPARED: why the attempt could not be prepared; REFUSED: the reason; else NULL
    const char *slow;       // HELLO, STARTED: why processes were started without their template; NULL = none was
    int32_t taken_port;     // PREPARED: the port that is taken, if that is the error; else 0
    uint8_t command;        // REFUSED: the command, an enum record_type
    uint32_t rank;          // REFUSED of a KILL: its rank
    // HELLO: all processes. STARTED: those that run. EXITED: the one that has ended. `ended_ms` is not set, and texts
    // are as long as they came.
    struct agent_process *processes;
    size_t n_processes;
    bool processes_told; // STARTED: the agent has listed the processes that run
};

// Returns true if agents send records of this type that report_decode() decodes.
bool report_type(unsigned record_type);
// ERR_INVALID says what is wrong. ERR_LIMIT: the JSON is nested too deep.
int report_decode(uint8_t type, const char *body, size_t len, struct arena *a, struct decoded_report *ret,
                  struct err *err);
// Decodes a HELLO into one report per group, at most `max` of them.
int report_decode_hello(const char *body, size_t len, size_t max, struct arena *a, struct decoded_report **ret,
                        size_t *ret_n, struct err *err);

struct printed_line {
    uint32_t rank;
    const char *text;
};

struct printed { // the lines of an OUTPUT; all in the arena
    const char *group;
    struct printed_line *lines;
    size_t n;
    size_t dropped; // lines that the agent did not send
};

// OUTPUT: {"group": UID, "lines": [[RANK, "text"], ...], "dropped": N}. ERR_INVALID; ERR_LIMIT: it is nested too deep.
int report_decode_output(const char *body, size_t len, struct arena *a, struct printed *ret, struct err *err);
