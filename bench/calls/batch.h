// SPDX-License-Identifier: Apache-2.0
// One long batch: split for the ranks of a group, echoed, and joined.
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct batch_numbers {
    double first;    // seconds of the first call, for which all memory is new
    double seconds;  // the median of the later calls
    double proxy_mb; // by how many MB the memory of the proxy grew at most
    double cpu[3];   // seconds of CPU time of one later call: client, proxy, ranks
};

struct batch_processes {
    pid_t proxy;
    const pid_t *ranks;
    size_t n_ranks;
};

// Calls the group several times with a batch of one tensor of `bytes`. Exits with a message if a call fails, or if its
// result is not the batch.
void batch_call(const char *address, const char *ns, const char *group, size_t bytes, const struct batch_processes *of,
                struct batch_numbers *ret);
