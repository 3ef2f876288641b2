// SPDX-License-Identifier: Apache-2.0
// What an agent has told this replica about one group in its pod (docs/protocol.md, "Agents"). Decisions are made from
// this snapshot.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum agent_state { AGENT_IDLE, AGENT_PREPARING, AGENT_PREPARED, AGENT_RUNNING, AGENT_STOPPING };
enum agent_process_state { AGENT_PROCESS_STARTING, AGENT_PROCESS_RUNNING, AGENT_PROCESS_EXITED };

struct agent_process {
    int32_t rank, attempt; // of this process: newer than its group's where ranks restart one by one
    enum agent_process_state state;
    // AGENT_PROCESS_EXITED
    int32_t exit_code, signal; // signal 0 = none
    bool oom;                  // the kernel killed it because the memory of its container was used up
    const char *message;       // why it could not be run, else ""
    const char *last_lines;    // that it printed, "" = nothing
    int64_t ended_ms;          // Unix time at which this replica heard of it
};

// One that is connected: since when, and when it was last heard of (Unix times).
struct agent_witness {
    int64_t since_ms, heard_ms;
};

struct agent_gpu {
    const char *uuid, *name; // uuid NULL = there is none
    int64_t xid;             // the last that the driver has reported, 0 = none
    int32_t rank;            // that has it
};

struct agent_facts {
    bool connected;      // and it has said HELLO
    const char *seen_by; // the name of another replica, to which it is connected; NULL = none says so
    int64_t
        changed_ms; // Unix time at which it connected, or was last heard of before it was lost; 0 = it was never here
    int64_t ending_ms;      // Unix time at which it said that its pod ends; 0 = it has not
    enum agent_state state; // AGENT_IDLE with attempt 0: it knows nothing of the group
    int32_t attempt;
    uint8_t sent; // record type of the last command on this connection that is not answered yet, 0 = none
    int32_t sent_attempt;
    // Why that attempt could not be prepared, or a command of it was refused; NULL = nothing. Stays while it is tried
    // again, until that goes well.
    const char *error;
    int64_t error_ms;   // Unix time at which this replica heard of it
    const char *slow;   // why processes of the group were started without their template; NULL = none was
    int32_t taken_port; // the error: rank 0 cannot listen on it; 0 = it is another one
    const struct agent_process *processes; // by rank; those that are known to have been started
    size_t n_processes;
    struct agent_gpu lost; // a GPU of this group's that fell off the bus, the first one
};
