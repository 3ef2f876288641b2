// SPDX-License-Identifier: Apache-2.0
// Amounts of resources, in thousandths (1 CPU = 1000, 1 byte = 1000, 1 GPU = 1000), saturating at the int64 range.
// Names are interned into small numbers so that comparing and adding costs no string work.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The first ids are fixed. Each new name gets the next id, and keeps it. Half of the ids are kept for names that a node
// offers, so that pods cannot use all ids by requesting invented names. All names without an id of their own count
// together as RESOURCE_OTHER, which no node has.
enum resource_id {
    RESOURCE_CPU,
    RESOURCE_MEMORY,
    RESOURCE_PODS,
    RESOURCE_EPHEMERAL_STORAGE,
    RESOURCE_GPU,
    RESOURCE_OTHER,
    RESOURCE_MAX = 256
};
#define RESOURCE_GPU_NAME "nvidia.com/gpu"

int resource_id(const char *name);
int resource_id_n(const char *name, size_t len, bool offered); // `offered`: a node offers it
const char *resource_name(int id);
int resource_count(void); // ids given out so far

struct resource {
    int id;
    int64_t milli;
};

struct resources { // sorted by id, no zero amounts, no id twice
    struct resource *items;
    size_t n;
};

int64_t amount_add(int64_t a, int64_t b);                                                // saturating
int64_t resources_get(const struct resources *r, int id);                                // 0 if missing
void resources_add(struct resources *to, const struct resources *from, struct arena *a); // to += from
void resources_max(struct resources *to, const struct resources *from, struct arena *a); // elementwise
bool resources_equal(const struct resources *a, const struct resources *b);
