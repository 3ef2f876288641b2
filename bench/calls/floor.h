// SPDX-License-Identifier: Apache-2.0
// The floor: the cost of a call that is nothing but bytes. As with the proxy, there are three processes in a row, but
// on bare TCP sockets: a client, a relay that passes on all bytes, and one process with all ends. An end answers when
// it has the whole question.
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define FLOOR_UNDER_WAY ((size_t)64 << 10) // bytes each way; so few that no process waits until another one reads them

struct floor {
    pid_t relay, ends;
    int fd;
    unsigned n;
};

// Forks. Exits with a message if that fails.
void floor_start(struct floor *f, unsigned n_ends);
void floor_stop(struct floor *f);
// Returns the round trips a second, one at a time. Each sends `len` bytes to each end, and gets `answer` bytes from
// each. Both numbers are at least 8.
double floor_rate(struct floor *f, size_t len, size_t answer, double seconds, double *ret_p50_us);
// The same with one end, and with up to FLOOR_UNDER_WAY bytes under way: each process reads all that has arrived, and
// sends the result in one piece.
double floor_rate_many(struct floor *f, size_t len, size_t answer, unsigned in_flight, double seconds);
