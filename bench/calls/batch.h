// SPDX-License-Identifier: Apache-2.0
// One long batch: cut for the ranks of a group, echoed, and joined.
#ifndef CADRE_BENCH_CALLS_BATCH_H
#define CADRE_BENCH_CALLS_BATCH_H

#include <stddef.h>
#include <sys/types.h>

struct batch_numbers {
    double seconds;  // from the call to its result
    double proxy_mb; // most memory that the proxy had meanwhile, above what it had before; MB
    double cpu[2];   // seconds: controller, proxy
};

// A batch of one tensor, of `bytes`. Exits with a message where anything is not as it should be.
void batch_call(const char *address, const char *ns, const char *group, size_t bytes, pid_t proxy,
                struct batch_numbers *ret);

#endif
