// SPDX-License-Identifier: Apache-2.0
// Open addressing with linear probing and backward-shift deletion: no tombstones, so no slow decay.
#include "common/base/map.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

void map_done(struct map *m)
{
    for (size_t i = 0; i < m->size; i++)
        free(m->entries[i].key);
    free(m->entries);
    *m = MAP_INIT;
}

// The entry of the key, or the free entry where it would go. The map must have a free entry.
static size_t find(const struct map *m, const char *key, uint64_t hash)
{
    size_t i = hash & (m->size - 1);
    while (m->entries[i].key && (m->entries[i].hash != hash || strcmp(m->entries[i].key, key) != 0))
        i = (i + 1) & (m->size - 1);
    return i;
}

static void grow(struct map *m)
{
    struct map bigger = {.size = m->size ? m->size * 2 : 16, .used = m->used};
    bigger.entries = xcalloc(bigger.size, sizeof *bigger.entries);
    for (size_t i = 0; i < m->size; i++)
        if (m->entries[i].key)
            bigger.entries[find(&bigger, m->entries[i].key, m->entries[i].hash)] = m->entries[i];
    free(m->entries);
    *m = bigger;
}

static struct map_entry *lookup(const struct map *m, const char *key)
{
    if (!m->used)
        return NULL;
    struct map_entry *e = &m->entries[find(m, key, str_hash(key, strlen(key)))];
    return e->key ? e : NULL;
}

void *map_get(const struct map *m, const char *key)
{
    struct map_entry *e = lookup(m, key);
    return e ? e->value : NULL;
}

bool map_has(const struct map *m, const char *key)
{
    return lookup(m, key) != NULL;
}

void *map_set(struct map *m, const char *key, void *value)
{
    if ((m->used + 1) * 4 > m->size * 3)
        grow(m);
    uint64_t hash = str_hash(key, strlen(key));
    struct map_entry *e = &m->entries[find(m, key, hash)];
    if (e->key) {
        void *old = e->value;
        e->value = value;
        return old;
    }
    *e = (struct map_entry){.key = xstrdup(key), .value = value, .hash = hash};
    m->used++;
    return NULL;
}

void *map_del(struct map *m, const char *key)
{
    struct map_entry *e = lookup(m, key);
    if (!e)
        return NULL;
    void *old = e->value;
    free(e->key);
    size_t mask = m->size - 1, hole = (size_t)(e - m->entries);
    for (size_t i = (hole + 1) & mask; m->entries[i].key; i = (i + 1) & mask) {
        size_t home = m->entries[i].hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->entries[hole] = m->entries[i];
            hole = i;
        }
    }
    m->entries[hole] = (struct map_entry){0};
    m->used--;
    return old;
}

bool map_next(const struct map *m, size_t *i, const char **ret_key, void **ret_value)
{
    while (*i < m->size) {
        const struct map_entry *e = &m->entries[(*i)++];
        if (e->key) {
            if (ret_key)
                *ret_key = e->key;
            if (ret_value)
                *ret_value = e->value;
            return true;
        }
    }
    return false;
}
