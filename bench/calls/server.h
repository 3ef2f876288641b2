// SPDX-License-Identifier: Apache-2.0
// The proxy under test, in its own process: operator/gateway as in a cluster, but without Kubernetes. Its authority
// trusts everybody, and its groups have fixed sizes.
#pragma once

#include "tests/fakeapi/certs.h"

#include <stdint.h>
#include <sys/types.h>

#define SERVER_NS "bench"
#define SERVER_PATH "/v1/connect"

enum { SERVER_TICKET_SIZE = 128 };

struct server_group {
    const char *name; // also its UID
    uint32_t world;
};

struct server_turns;

struct server {
    struct server_turns *turns; // set before the start: counts the turns of the loop; NULL = no counts
    pid_t pid;
    int port, tls_port; // on 127.0.0.1
    char socket[64];    // "unix:/path"; long bodies go through shared memory
};

// The turns of its loop, in memory that both processes share. The CPU time of a turn includes the system call that
// waits for the next one. Only the wall time includes the time in which other processes used this core.
//
// A virtual machine is at times slowed down by its host, for 20 to 70 ms, and a thread's CPU time counts that, too. So
// some arithmetic follows on a long turn: if it takes more than twice as long as at best, the machine was slow.
struct server_turns {
    _Atomic uint64_t n, over_2_ms;              // by CPU time
    _Atomic uint64_t slow;                      // turns over 2 ms while the machine was slow
    _Atomic int64_t longest_cpu_us, longest_us; // by CPU time while the machine was not slow, and by wall time
    int64_t arithmetic_us;                      // at best
};

struct server_turns *server_turns_new(void);

// Forks. Exits with a message if that fails.
void server_start(struct server *s, const struct certs *certs, const struct server_group *groups, unsigned n);
void server_stop(struct server *s);
void server_ticket(char out[SERVER_TICKET_SIZE], const char *group, uint32_t rank);
