// SPDX-License-Identifier: Apache-2.0
// A spec that cannot be run. What runs from an earlier one goes on, as long as it does.
#pragma once

#include "operator/reconcile/work.h"

void refusal_keep_earlier(struct work *w, const char *reason, const char *message);
