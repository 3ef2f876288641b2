// SPDX-License-Identifier: Apache-2.0
// Objects that tests write as JSON.
#ifndef CADRE_TESTS_OBJECT_JSON_H
#define CADRE_TESTS_OBJECT_JSON_H

#include "operator/api/object.h"

const struct object *object_of_json(enum kind kind, const char *json); // or the test fails

#endif
