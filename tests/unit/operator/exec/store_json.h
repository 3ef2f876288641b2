// SPDX-License-Identifier: Apache-2.0
// Objects that tests write as JSON, in a store.
#ifndef CADRE_TESTS_STORE_JSON_H
#define CADRE_TESTS_STORE_JSON_H

#include "operator/runtime/store.h"

void store_put_json(struct store *s, const char *json); // of the store's kind, or the test fails

#endif
