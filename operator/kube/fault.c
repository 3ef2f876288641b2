// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/fault.h"

#ifdef CADRE_FAULTS

#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool fault_counts(const struct kube_request *r)
{
    if (r->dry_run || r->verb == VERB_GET || r->verb == VERB_LIST || r->verb == VERB_WATCH)
        return false;
    switch (r->kind) {
    case KIND_POD:
    case KIND_SERVICE:
    case KIND_ENDPOINTSLICE:
    case KIND_EVENT:
    case KIND_WORKERGROUP:
    case KIND_PLACEMENTGROUP:
        return true;
    default:
        return false;
    }
}

static void crash_at(const char *moment, int number)
{
    const char *when = getenv("CADRE_CRASH_AT_WRITE");
    int64_t n;
    if (when && str_starts(when, moment) && str_to_i64(when + strlen(moment), &n) && n == number)
        _exit(137); // like SIGKILL: the process cleans up nothing and says nothing
}

int fault_write_begins(void)
{
    static int writes;
    crash_at("before:", ++writes);
    return writes;
}

void fault_write_answered(int number)
{
    crash_at("after:", number);
}

#endif
