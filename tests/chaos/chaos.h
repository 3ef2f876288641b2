// SPDX-License-Identifier: Apache-2.0
// Proxies, worker processes and clients on this machine, which chaos.c kills, stops for a while, and starts again at
// random while they work. proxy.c and client.c are two of these programs, ledger.c writes down the calls that a rank
// runs, and verdict.c compares them with the answers that the clients got.
#pragma once

#include <stdint.h>

enum { CHAOS_RANKS = 3, CHAOS_PROXIES = 2, CHAOS_CLIENTS = 3, CHAOS_TOKENS = 1000000 };

#define CHAOS_NS "lab"
#define CHAOS_GROUP "ledger"

// Which ranks run a call, and with which options.
enum chaos_kind { CHAOS_ALL, CHAOS_EACH, CHAOS_ONE, CHAOS_ANY, CHAOS_ZERO, CHAOS_QUIET, CHAOS_AGAIN, CHAOS_KINDS };

// The main functions of child processes. They return the exit status.
int proxy_run(const char *socket_path);
// The n-th client of the run. The tokens of its calls begin at n * CHAOS_TOKENS. It writes a line when it begins a call
// ("S token kind rank"), and when it has the answer ("R token" or "E token CODE may-have-run message"). After SIGTERM,
// it waits for the missing answers. Returns 0, or 1 if something happened that must not happen (it prints that on
// stderr).
int client_run(const char *const sockets[CHAOS_PROXIES], const char *file, unsigned n, uint64_t seed);

// Reads the ledger and the files of all clients. `killed` of the clients were killed before their end. Returns whether
// all is well, and prints what is not.
int verdict(const char *ledger, char *const files[], const unsigned char *killed, unsigned n);
