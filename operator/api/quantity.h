// SPDX-License-Identifier: Apache-2.0
// Amounts of a resource as text, as Kubernetes writes them; in memory they are thousandths (resource.h).
#pragma once

#include "operator/api/resource.h"

// Kubernetes quantities: "500m", "1Gi", "2e3". Below a thousandth away from zero, as Kubernetes rounds. ERR_INVALID
// names what is wrong.
int quantity_parse(const char *s, int64_t *ret_milli, struct err *err);
// For people: "4" GPUs, "500m" CPU, "1Gi" memory, in the shortest exact form.
const char *quantity_format(int id, int64_t milli, struct arena *a);
