// SPDX-License-Identifier: Apache-2.0
// Reads the value of --namespace-weights: "team-a=3,team-b=2".
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { WEIGHT_MAX = 100 };

bool weights_check(const char *text);
// Returns the weight of this namespace. It is 1 if the text `given` does not contain the namespace, or is NULL.
uint32_t weights_of(const void *given, const char *ns);
