// SPDX-License-Identifier: Apache-2.0
// Counts the pods that were created with the operator's keys. These pods trust the keys.
#pragma once

#include "operator/runtime/store.h"

// Returns the number of pods of groups that have not ended. `but` = count only pods that were created with other keys
// than these; NULL = count all.
size_t keyholders_count(const struct store *pods, const char *but);
