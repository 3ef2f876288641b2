// SPDX-License-Identifier: Apache-2.0
// One long batch: split for the ranks of a group, echoed, and joined.
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct batch_numbers {
    double first;    // seconds from the first such call to its result: all memory is new
    double seconds;  // ... the next ones
    double proxy_mb; // most memory that the proxy had meanwhile, above what it had before; MB
    double cpu[3];   // seconds of one of the next: client, proxy, ranks
};

struct batch_processes {
    pid_t proxy;
    const pid_t *ranks;
    size_t n_ranks;
};

// A batch of one tensor, of `bytes`, several times. Exits with a message where anything is not as it should be.
void batch_call(const char *address, const char *ns, const char *group, size_t bytes, const struct batch_processes *of,
                struct batch_numbers *ret);
