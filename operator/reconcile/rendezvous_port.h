// SPDX-License-Identifier: Apache-2.0
// The port at which rank 0 of a group on bundles listens. Several groups may have their rank 0 in one pod, so each
// needs a port of its own there. Pure.
#pragma once

#include "operator/reconcile/group_view.h"

// Returns spec.rendezvousPort, otherwise the port that the group has at `host`, otherwise a free one. `taken`: somebody
// else listens at this port; 0 = no such port is known. If another group has spec.rendezvousPort, *ret_other is that
// group and the result is 0, otherwise *ret_other is NULL.
int32_t rendezvous_port(const struct group_view *v, const char *host, int32_t taken, struct arena *a,
                        const struct other_user **ret_other);
