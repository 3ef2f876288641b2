// SPDX-License-Identifier: Apache-2.0
// The weights of namespaces (tenant.h), as --namespace-weights gives them: "team-a=3,team-b=2". Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { WEIGHT_MAX = 100 };

bool weights_check(const char *text);
// Returns the weight of this namespace. It is 1 if the text `given` does not contain the namespace, or is NULL. The
// text has passed weights_check().
uint32_t weights_of(const char *given, const char *ns);
