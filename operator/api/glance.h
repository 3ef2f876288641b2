// SPDX-License-Identifier: Apache-2.0
// Name and version of an object, from the first 200 bytes of its JSON text. A version that is known already need not be
// decoded again.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct glance {
    char ns[64], name[256], uid[64], version[32]; // ns "" for cluster-wide objects
};

// Reads the text as the API server writes it: kind and apiVersion, then metadata with name, namespace, uid and
// resourceVersion before anything that is no plain string. False for any other: then only decoding can tell. What
// follows is not looked at.
bool glance_read(const char *json, size_t len, struct glance *ret);
