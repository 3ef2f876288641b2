// SPDX-License-Identifier: Apache-2.0
// For tests, only in builds with CADRE_FAULTS: ends the process at one of its writes, as abruptly as SIGKILL.
//   CADRE_CRASH_AT_WRITE=before:N   just before it sends the N-th write (from 1), which therefore does not happen
//   CADRE_CRASH_AT_WRITE=after:N    when the answer has come: the write has happened, but the process does not know
// Only the writes that a leader decides count: pods, Services, EndpointSlices, statuses, Events. Dry runs, Leases, keys
// and reviews do not. Use it from one thread.
#pragma once

#include "operator/kube/kube_request.h"

#ifdef CADRE_FAULTS

bool fault_counts(const struct kube_request *r);
int fault_write_begins(void); // returns the number of the write
void fault_write_answered(int number);

#else

static inline bool fault_counts(const struct kube_request *r)
{
    (void)r;
    return false;
}

static inline int fault_write_begins(void)
{
    return 0;
}

static inline void fault_write_answered(int number)
{
    (void)number;
}

#endif
