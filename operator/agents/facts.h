// SPDX-License-Identifier: Apache-2.0
// The facts that an agent has reported to this replica about one group in its pod (docs/protocol.md, "Agents").
// Decisions use this snapshot.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum agent_state { AGENT_IDLE, AGENT_PREPARING, AGENT_PREPARED, AGENT_RUNNING, AGENT_STOPPING };
enum agent_process_state { AGENT_PROCESS_STARTING, AGENT_PROCESS_RUNNING, AGENT_PROCESS_EXITED };

struct agent_process {
    // `attempt` belongs to this process. It is newer than its group's if ranks restart one by one.
    int32_t rank, attempt;
    enum agent_process_state state;
    // only with AGENT_PROCESS_EXITED:
    int32_t exit_code, signal; // signal 0 = none
    bool oom;                  // the kernel killed it because its container had no memory left
    const char *message;       // why it could not run, else ""
    const char *last_lines;    // the last lines that it printed, "" = none
    int64_t ended_ms;          // Unix time when this replica heard of it
};

// A connected peer: since when it is connected, and when this replica heard of it last (Unix times).
struct connected_peer {
    int64_t since_ms, heard_ms;
};

struct agent_gpu {
    const char *uuid, *name; // uuid NULL = there is no such GPU
    int64_t xid;             // the last Xid that the driver has reported, 0 = none
    int32_t rank;            // the rank that uses it
};

struct agent_facts {
    bool connected;      // it is connected, and has sent HELLO
    const char *seen_by; // the name of another replica to which it is connected; NULL = none reports it
    // Unix time when it connected; or when this replica heard of it last before it was lost; 0 = it was never here
    int64_t changed_ms;
    int64_t ending_ms;      // Unix time when it said that its pod ends; 0 = it has not
    enum agent_state state; // AGENT_IDLE with attempt 0: it knows nothing about the group
    int32_t attempt;
    uint8_t sent; // record type of the last command on this connection without an answer, 0 = none
    int32_t sent_attempt;
    // Why that attempt could not be prepared, or why a command was refused; NULL = no error. It stays while the attempt
    // is tried again, until that succeeds.
    const char *error;
    int64_t error_ms;   // Unix time when this replica heard of it
    const char *slow;   // why processes of the group were started without their template; NULL = none was
    int32_t taken_port; // the error is that rank 0 cannot listen on this port; 0 = another error
    const struct agent_process *processes; // by rank; the processes that are known to have started
    size_t n_processes;
    struct agent_gpu lost; // the first GPU of this group that fell off the bus
};
