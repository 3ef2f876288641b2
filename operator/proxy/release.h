// SPDX-License-Identifier: Apache-2.0
// Sends calls that waited for their group or a slot, when they need not wait any longer.
#pragma once

#include "operator/proxy/proxy_group.h"

// Sends those of this group, at most *work of them, which it counts down. False: there may be more.
bool calls_release(struct group *g, unsigned *work);
