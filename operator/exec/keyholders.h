// SPDX-License-Identifier: Apache-2.0
// Pods that were made with the operator's keys, and keep what they were told of them.
#pragma once

#include "operator/runtime/store.h"

// Pods of groups that have not ended; `but`: those that were made with other keys than these. NULL: all.
size_t keyholders_count(const struct store *pods, const char *but);
