// SPDX-License-Identifier: Apache-2.0
// Programs in Python that make calls, python_client.py and ray_peer.py. The benchmark asks these processes over pipes.
#pragma once

#include <stdio.h>
#include <sys/types.h>

struct peer {
    pid_t pid; // 0 = there is none
    const char *script;
    FILE *to, *from;
    char version[256]; // or "no ...", and why
};

// python: the interpreter; NULL = no peer. `argument` of the script may be NULL. Exits with a message if the script
// does not start. If its version is "no ...", there is no peer.
void peer_start(struct peer *p, const char *python, const char *script, const char *argument);
void peer_stop(struct peer *p);
// Returns the calls a second, or 0 if there is no peer.
double peer_rate(struct peer *p, unsigned ranks, size_t bytes, unsigned in_flight, double seconds);
