// SPDX-License-Identifier: Apache-2.0
// A map from call id to pointer. Ids usually count up, and are stored in that order. If a peer chooses ids that
// collide, they are hashed. 0 is not an id. Values are borrowed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idmap_entry {
    uint32_t id; // 0 = free
    void *value;
};

struct idmap {
    struct idmap_entry *entries;
    uint32_t size; // power of two, 0 until first use
    uint32_t used;
    uint32_t salt; // 0 = not hashed. It comes from a table's address, so that no peer can choose ids that collide
};

#define IDMAP_INIT ((struct idmap){0})

void idmap_done(struct idmap *m);
void *idmap_get(const struct idmap *m, uint32_t id);
void idmap_add(struct idmap *m, uint32_t id, void *value); // the id must not be there
void *idmap_del(struct idmap *m, uint32_t id);             // returns the value, or NULL if there was none
