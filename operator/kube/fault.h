// SPDX-License-Identifier: Apache-2.0
// For tests, only in builds with CADRE_FAULTS: ends the process at one of its writes, as abruptly as SIGKILL.
//   CADRE_CRASH_AT_WRITE=before:N   just before the N-th write (from 1) is sent: it does not happen
//   CADRE_CRASH_AT_WRITE=after:N    when its answer is here: it has happened, but the process does not know
// Writes of a leader's decisions count: pods, Services, EndpointSlices, statuses, Events. Dry runs, leases, keys and
// reviews do not. One thread.
#pragma once

#include "operator/kube/kube_request.h"

#ifdef CADRE_FAULTS

bool fault_counts(const struct request *r);
int fault_write_begins(void); // its number
void fault_write_answered(int number);

#else

static inline bool fault_counts(const struct request *r)
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
