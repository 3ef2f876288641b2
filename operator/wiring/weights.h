// SPDX-License-Identifier: Apache-2.0
// The value of --namespace-weights: "team-a=3,team-b=2".
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { WEIGHT_MAX = 100 };

bool weights_check(const char *text);
// Of this namespace; 1 where `given`, the text or NULL, does not name it.
uint32_t weights_of(const void *given, const char *ns);
