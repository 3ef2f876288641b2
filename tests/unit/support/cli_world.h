// SPDX-License-Identifier: Apache-2.0
// A group of real cadre-worker processes behind a gateway, and programs that are run against it while both go on.
#pragma once

#include "tests/unit/support/gateway_fixture.h"

#include <sys/types.h>

enum { WORLD_RANKS_MAX = 4 };

struct cli_world {
    struct gateway_fixture gateway;
    char url[160]; // of the gateway
    pid_t workers[WORLD_RANKS_MAX];
    uint32_t n;
    struct gateway_fixture *other; // another replica, which takes part in what is run; NULL = there is none
    uint64_t interrupt_at_clients; // a signal to the next program, when so many are connected; 0 = never
    int interrupt_signal;          // which, 0 = SIGINT
    bool late;                     // the ranks are not there yet: they start when the next program is connected
    const char *module, *roles;    // as --module and --roles want it
    // The last program:
    struct buf out, err;
    int status; // its exit status, 128 + N after signal N
};

void cli_world_start(struct cli_world *w, uint32_t ranks); // accumulators, all connected on return
void cli_world_start_roles(struct cli_world *w, uint32_t ranks, const char *module, const char *roles);
void cli_world_start_late(struct cli_world *w, uint32_t ranks); // accumulators that come when a program has connected
void cli_world_stop(struct cli_world *w);
void cli_world_kill(struct cli_world *w, uint32_t rank);
// Runs it to its end. `interrupt_at`: sends SIGINT when that has come out; NULL = never.
void cli_world_run(struct cli_world *w, const char *const argv[], const char *interrupt_at);
// The same for a command line of words with single blanks between, in which ' holds them together and @ is the url.
void cli_world_line(struct cli_world *w, const char *line);
