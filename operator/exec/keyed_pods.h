// SPDX-License-Identifier: Apache-2.0
// Counts the pods that were created with the operator's keys. These pods trust the keys.
#pragma once

#include "operator/runtime/store.h"

// Returns the number of pods that belong to groups or PlacementGroups and have not ended. `but` is the id of keys: pods
// that were created with these keys are not counted. NULL = count all.
size_t keyed_pods_count(const struct store *pods, const char *but);
