// SPDX-License-Identifier: Apache-2.0
// The proxy under test, in a process of its own: operator/gateway with an authority that trusts everybody, and groups
// of fixed sizes, as in a cluster but for Kubernetes.
#pragma once

#include "tests/fakeapi/certs.h"

#include <stdint.h>
#include <sys/types.h>

#define SERVER_NS "bench"
#define SERVER_PATH "/v1/connect"

enum { SERVER_TICKET_SIZE = 128 };

struct server_group {
    const char *name; // its UID too
    uint32_t world;
};

struct server_turns;

struct server {
    struct server_turns *turns; // set before the start: what its loop does is counted; NULL = it is not
    pid_t pid;
    int port, tls_port; // on 127.0.0.1
    char socket[64];    // "unix:/path", where long bodies go through shared memory
};

// The turns of its loop, in memory that both processes have. The CPU time of a turn includes the system call that waits
// for the next one. Time that other processes had on this core is in the wall time alone.
//
// A virtual machine is at times slowed down by its host, for 20 to 70 ms, and a thread's CPU time counts that, too. So
// some arithmetic follows on a long turn: if it takes more than twice as long as at best, the machine was slow.
struct server_turns {
    _Atomic uint64_t n, over_2_ms;              // by CPU time
    _Atomic uint64_t slow;                      // of those over 2 ms, while the machine was slow
    _Atomic int64_t longest_cpu_us, longest_us; // of CPU time, while the machine was not slow, and of wall time
    int64_t arithmetic_us;                      // at best
};

struct server_turns *server_turns_new(void);

// Forks; exits with a message where that fails.
void server_start(struct server *s, const struct certs *certs, const struct server_group *groups, unsigned n);
void server_stop(struct server *s);
void server_ticket(char out[SERVER_TICKET_SIZE], const char *group, uint32_t rank);
