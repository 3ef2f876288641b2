// SPDX-License-Identifier: Apache-2.0
// A hash map from string to pointer. Keys are copied; values are borrowed. The order of iteration is unspecified: sort
// if a decision depends on it. Not thread-safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_entry {
    char *key; // NULL = never used
    void *value;
    uint64_t hash;
};

struct map {
    struct map_entry *entries;
    size_t size; // power of two, 0 until first use
    size_t used; // live entries
};

#define MAP_INIT ((struct map){0})

void map_done(struct map *m); // does not touch the values
void *map_get(const struct map *m, const char *key);
bool map_has(const struct map *m, const char *key);
void *map_set(struct map *m, const char *key, void *value); // returns the value that was there, or NULL
void *map_del(struct map *m, const char *key);              // returns the value that was there, or NULL

// for (size_t i = 0; map_next(&m, &i, &key, &value);) ... — the map must not change meanwhile.
bool map_next(const struct map *m, size_t *i, const char **ret_key, void **ret_value);
