// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/idmap.h"

#include "common/base/mem.h"

#include <assert.h>
#include <stdlib.h>

#define FIRST_SIZE 16u
// Most entries to pass. If there are more, a peer has chosen ids that collide, or its ids have no order.
#define FAR_MAX 64u

void idmap_done(struct idmap *m)
{
    free(m->entries);
    *m = IDMAP_INIT;
}

// Ids that count up are next to each other, so that ids of the same time share lines of the cache.
static uint32_t home(const struct idmap *m, uint32_t id)
{
    uint32_t h = m->salt ? (id ^ m->salt) * 0x9e3779b1u : id;
    return (m->salt ? h ^ h >> 15 : h) & (m->size - 1);
}

// The distance of this entry from its home.
static uint32_t behind(const struct idmap *m, uint32_t i)
{
    return (i - home(m, m->entries[i].id)) & (m->size - 1);
}

// NULL: the id is not there. An entry with a longer distance from its home comes first, so the search ends at an entry
// with a shorter one.
static struct idmap_entry *find(const struct idmap *m, uint32_t id)
{
    uint32_t i = home(m, id);
    for (uint32_t far = 0; m->entries[i].id && behind(m, i) >= far; far++, i = (i + 1) & (m->size - 1))
        if (m->entries[i].id == id)
            return &m->entries[i];
    return NULL;
}

// Adds an entry. Returns how many others it had to pass.
static uint32_t put(struct idmap *m, struct idmap_entry e)
{
    uint32_t i = home(m, e.id), passed = 0;
    for (uint32_t far = 0; m->entries[i].id; far++, passed++, i = (i + 1) & (m->size - 1)) {
        uint32_t other = behind(m, i);
        if (other >= far)
            continue;
        struct idmap_entry nearer = m->entries[i];
        m->entries[i] = e;
        e = nearer;
        far = other;
    }
    m->entries[i] = e;
    return passed;
}

void *idmap_get(const struct idmap *m, uint32_t id)
{
    const struct idmap_entry *e = m->used && id ? find(m, id) : NULL;
    return e ? e->value : NULL;
}

static void resize(struct idmap *m, uint32_t size)
{
    struct idmap_entry *old = m->entries;
    uint32_t n = m->size;
    m->entries = xcalloc(size, sizeof *m->entries);
    m->size = size;
    for (uint32_t i = 0; i < n; i++)
        if (old[i].id)
            put(m, old[i]);
    free(old);
}

void idmap_add(struct idmap *m, uint32_t id, void *value)
{
    if (m->used + 1 > m->size / 2)
        resize(m, m->size ? m->size * 2 : FIRST_SIZE);
    assert(id && !find(m, id));
    m->used++;
    if (put(m, (struct idmap_entry){.id = id, .value = value}) <= FAR_MAX || m->salt)
        return;
    m->salt = (uint32_t)((uintptr_t)m->entries >> 4) | 1;
    resize(m, m->size);
}

void *idmap_del(struct idmap *m, uint32_t id)
{
    struct idmap_entry *e = m->used && id ? find(m, id) : NULL;
    if (!e)
        return NULL;
    void *value = e->value;
    uint32_t hole = (uint32_t)(e - m->entries), mask = m->size - 1;
    for (uint32_t i = (hole + 1) & mask; m->entries[i].id && behind(m, i); hole = i, i = (i + 1) & mask)
        m->entries[hole] = m->entries[i];
    m->entries[hole] = (struct idmap_entry){0};
    m->used--;
    return value;
}
