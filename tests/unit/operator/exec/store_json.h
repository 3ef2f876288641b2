// SPDX-License-Identifier: Apache-2.0
// Objects that tests write as JSON, in a store.
#pragma once

#include "operator/runtime/store.h"

void store_put_json(struct store *s, const char *json); // of the store's kind, or the test fails
