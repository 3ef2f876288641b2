// SPDX-License-Identifier: Apache-2.0
// For tests, only in builds with CADRE_FAULTS: the process ends at one of its writes, as abruptly as by SIGKILL.
//   CADRE_CRASH_AT_WRITE=before:N   when the N-th write (from 1) is about to be sent: it does not happen
//   CADRE_CRASH_AT_WRITE=after:N    when its answer is there: it has happened, and nobody knows
// What a leader decides counts: pods, Services, EndpointSlices, statuses, Events. Dry runs, leases, keys and
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
