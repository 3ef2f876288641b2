// SPDX-License-Identifier: Apache-2.0
// Stops what agents of PlacementGroups run of groups that are no tenants any more (tenancy.h): at once where a group is
// seen to go, and a moment after an agent says that it runs something which nobody knows.
#ifndef CADRE_EXEC_EVICTION_H
#define CADRE_EXEC_EVICTION_H

#include "common/base/loop.h"
#include "operator/exec/tenancy.h"
#include "operator/kube/client.h"

struct eviction;

struct eviction_options {             // all borrowed
    const struct kube_client *client; // says whether this replica may decide
    const struct tenancy *tenancy;
    const struct store *placementgroups, *pods; // placementgroups NULL: there are none
    struct agents *agents;                      // NULL: nobody is ever connected
};

struct eviction *eviction_new(struct loop *loop, const struct eviction_options *options);
void eviction_free(struct eviction *e); // accepts NULL
// Tells nobody anything before the start, at which it looks at all PlacementGroups, nor after the stop, nor once the
// lease has run out: a process that was frozen does not know yet what the next leader has begun meanwhile.
void eviction_start(struct eviction *e);
void eviction_stop(struct eviction *e);
void eviction_now(struct eviction *e, const char *ns, const char *placementgroup);
void eviction_later(struct eviction *e, const char *ns, const char *placementgroup);

#endif
