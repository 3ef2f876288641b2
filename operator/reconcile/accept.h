// SPDX-License-Identifier: Apache-2.0
// Decides whether the operator can run an object, from its spec alone.
#pragma once

#include "operator/api/placementgroup.h"
#include "operator/api/podtemplate.h"

struct refusal {
    const char *reason;  // of reason.h
    const char *message; // names the field and what to do
};

// Returns false with the reason in *ret. Returns true with facts about the template in *ret_facts.
bool group_accept(const struct workergroup *wg, struct arena *a, struct refusal *ret, struct template_facts *ret_facts);
// The same for processes that run on this machine without pods: no template is needed.
bool group_accept_local(const struct workergroup *wg, struct arena *a, struct refusal *ret);
// The same for a PlacementGroup.
bool placementgroup_accept(const struct placementgroup *plg, struct arena *a, struct refusal *ret,
                           struct template_facts *ret_facts);
