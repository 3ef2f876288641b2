// SPDX-License-Identifier: Apache-2.0
// Amounts of a resource as text, as Kubernetes writes them; in memory they are thousandths (resource.h).
#pragma once

#include "operator/api/resource.h"

// Reads a quantity of Kubernetes: "500m", "1Gi", "2e3". Rounds fractions of a thousandth away from zero, as Kubernetes
// does. ERR_INVALID says what is wrong.
int quantity_parse(const char *s, int64_t *ret_milli, struct err *err);
// Writes an amount for people, in the shortest exact form: "4" GPUs, "500m" CPU, "1Gi" memory.
const char *quantity_format(int id, int64_t milli, struct arena *a);
