// SPDX-License-Identifier: Apache-2.0
// Objects that tests write as JSON.
#pragma once

#include "operator/api/object.h"

const struct object *object_of_json(enum kind kind, const char *json); // or the test fails
