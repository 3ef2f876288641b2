// SPDX-License-Identifier: Apache-2.0
// Stores as the operator has them, and objects in them that tests write as JSON.
#pragma once

#include "operator/runtime/store.h"

// One of each kind that the operator mirrors, by kind; the others are NULL.
void stores_new(struct store *stores[KIND_COUNT]);
void stores_free(struct store *stores[KIND_COUNT]);

void store_put_json(struct store *s, const char *json); // of the store's kind, or the test fails
