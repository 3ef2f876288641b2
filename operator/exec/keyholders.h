// SPDX-License-Identifier: Apache-2.0
// Pods that were created with the operator's keys, and trust them from then on.
#pragma once

#include "operator/runtime/store.h"

// Pods of groups that have not ended; `but`: those that were made with other keys than these. NULL: all.
size_t keyholders_count(const struct store *pods, const char *but);
