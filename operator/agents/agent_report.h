// SPDX-License-Identifier: Apache-2.0
// What an agent says, decoded and checked: the bodies of docs/protocol.md ("Agents"). Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"
#include "operator/agents/facts.h"

enum { REPORT_GROUP_MAX = 63, REPORT_PROCESSES_MAX = 1024 };

struct report {             // of one group; all strings in the arena of the call
    uint8_t type;           // enum record_type: PREPARED, STARTED, EXITED, STOPPED, REFUSED, or HELLO
    const char *group;      // its UID; NULL: REFUSED, and the agent could not read the command
    int32_t attempt;        // 0 = none yet
    enum agent_state state; // HELLO
    const char *error;      // PREPARED, where it is not; REFUSED; else NULL
    const char *slow;       // HELLO, STARTED: why processes were started without their template; NULL: none was
    int32_t taken_port;     // PREPARED, where that is the error; else 0
    uint8_t command;        // REFUSED: enum record_type
    uint32_t rank;          // REFUSED, of a KILL
    // HELLO: all; STARTED: those that run; EXITED: the one. `ended_ms` is not set, texts are as long as they came.
    struct agent_process *processes;
    size_t n_processes;
    bool processes_told; // STARTED of an agent that tells which of them run
};

// Whether agents send such records to be decoded here.
bool report_type(unsigned record_type);
// ERR_INVALID with what is wrong; ERR_LIMIT.
int report_decode(uint8_t type, const char *body, size_t len, struct arena *a, struct report *ret, struct err *err);
// One report a group. At most `max` of them.
int report_decode_hello(const char *body, size_t len, size_t max, struct arena *a, struct report **ret, size_t *ret_n,
                        struct err *err);

struct printed_line {
    uint32_t rank;
    const char *text;
};

struct printed { // all in the arena
    const char *group;
    struct printed_line *lines;
    size_t n;
    size_t dropped; // lines that were not sent
};

// OUTPUT: {"group": UID, "lines": [[RANK, "text"], ...], "dropped": N}. ERR_INVALID; ERR_LIMIT: it is nested too deep.
int report_decode_output(const char *body, size_t len, struct arena *a, struct printed *ret, struct err *err);
