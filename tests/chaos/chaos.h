// SPDX-License-Identifier: Apache-2.0
// Proxies, worker processes and clients on this machine, which are killed, stopped for a while and started again at
// random while they work. What each of them does is in a file of its own; chaos.c kills, ledger.c writes down what a
// rank ran, verdict.c compares that with what the clients say.
#pragma once

#include <stdint.h>

enum { CHAOS_RANKS = 3, CHAOS_PROXIES = 2, CHAOS_CLIENTS = 3, CHAOS_TOKENS = 1000000 };

#define CHAOS_NS "lab"
#define CHAOS_GROUP "ledger"

// Which ranks run a call, and what is asked of it besides.
enum chaos_kind { CHAOS_ALL, CHAOS_EACH, CHAOS_ONE, CHAOS_ANY, CHAOS_ZERO, CHAOS_QUIET, CHAOS_AGAIN, CHAOS_KINDS };

// The functions of child processes: return the exit status.
int proxy_run(const char *socket_path);
// The n-th client of the run. Its calls have the tokens from n * CHAOS_TOKENS; it writes a line when it begins one
// ("S token kind rank") and when it is answered ("R token" or "E token CODE may-have-run message"). After SIGTERM it
// waits for the answers that are left and returns 0; 1 if there was something that may not be (said on stderr).
int client_run(const char *const sockets[CHAOS_PROXIES], const char *file, unsigned n, uint64_t seed);

// Reads the ledger and the files of all clients. `killed` of them have not come to their end. Returns whether all
// is well; says what is not.
int verdict(const char *ledger, char *const files[], const unsigned char *killed, unsigned n);
