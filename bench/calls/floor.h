// SPDX-License-Identifier: Apache-2.0
// The floor: what calls would cost if they were nothing but bytes. As with the proxy there are three processes in a
// row, but on bare TCP sockets: a client, a relay that passes on what comes, and the ends, all in one process,
// which answer when they have the whole question.
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define FLOOR_UNDER_WAY ((size_t)64 << 10) // bytes each way, that no process waits for another one to read them

struct floor {
    pid_t relay, ends;
    int fd;
    unsigned n;
};

// Forks; exits with a message where that fails.
void floor_start(struct floor *f, unsigned n_ends);
void floor_stop(struct floor *f);
// Round trips a second, one at a time: `len` bytes to each end, `answer` bytes from each. Both at least 8.
double floor_rate(struct floor *f, size_t len, size_t answer, double seconds, double *ret_p50_us);
// The same of one end with many under way, FLOOR_UNDER_WAY at most: each process reads what has come, and what comes of
// that goes out in one piece.
double floor_rate_many(struct floor *f, size_t len, size_t answer, unsigned in_flight, double seconds);
