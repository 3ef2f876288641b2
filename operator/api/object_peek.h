// SPDX-License-Identifier: Apache-2.0
// Reads the name and the version of an object from the first 200 bytes of its JSON text. If the operator already knows
// this version, it need not decode the object again.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct object_peek {
    char ns[64], name[256], uid[64], version[32]; // ns "" for cluster-wide objects
};

// Reads the text if it is in the order of the API server: kind and apiVersion, then metadata with name, namespace, uid
// and resourceVersion before any value that is not a plain string. Returns false for any other text; then decode it.
// Does not check the rest of the text.
bool object_peek(const char *json, size_t len, struct object_peek *ret);
// Reads the same from a text in any order, which may be one that cannot be decoded. Returns false if it is not an
// object, or if its metadata has no name or uid. An escape in these strings is not resolved.
bool object_identify(const char *json, size_t len, struct object_peek *ret);
