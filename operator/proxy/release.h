// SPDX-License-Identifier: Apache-2.0
// Calls that wait for their group or a slot, once they need not wait any longer.
#ifndef CADRE_PROXY_RELEASE_H
#define CADRE_PROXY_RELEASE_H

#include "operator/proxy/proxy_group.h"

// Sends those of this group, at most *work of them, which it counts down. False: there may be more.
bool calls_release(struct group *g, unsigned *work);

#endif
