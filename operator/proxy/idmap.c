// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/idmap.h"

#include "common/base/mem.h"

#include <assert.h>
#include <stdlib.h>

#define FIRST_SIZE 16u

void idmap_done(struct idmap *m)
{
    free(m->slots);
    *m = IDMAP_INIT;
}

static uint32_t home(const struct idmap *m, uint32_t id)
{
    uint32_t h = (id ^ m->salt) * 0x9e3779b1u;
    return (h ^ h >> 15) & (m->size - 1);
}

// The slot of the id, or the free one where it would go.
static uint32_t find(const struct idmap *m, uint32_t id)
{
    uint32_t i = home(m, id);
    while (m->slots[i].id && m->slots[i].id != id)
        i = (i + 1) & (m->size - 1);
    return i;
}

void *idmap_get(const struct idmap *m, uint32_t id)
{
    return m->used && id ? m->slots[find(m, id)].value : NULL;
}

static void resize(struct idmap *m, uint32_t size)
{
    struct idmap_entry *old = m->slots;
    uint32_t n = m->size;
    m->slots = xcalloc(size, sizeof *m->slots);
    m->size = size;
    if (!m->salt)
        m->salt = (uint32_t)((uintptr_t)m->slots >> 4) | 1;
    for (uint32_t i = 0; i < n; i++)
        if (old[i].id)
            m->slots[find(m, old[i].id)] = old[i];
    free(old);
}

void idmap_add(struct idmap *m, uint32_t id, void *value)
{
    if (m->used + 1 > m->size / 2)
        resize(m, m->size ? m->size * 2 : FIRST_SIZE);
    struct idmap_entry *e = &m->slots[find(m, id)];
    assert(id && !e->id);
    *e = (struct idmap_entry){.id = id, .value = value};
    m->used++;
}

// Moves back what only stands behind the hole because it was taken, so that searches may stop at free slots.
static void close_hole(struct idmap *m, uint32_t hole)
{
    uint32_t mask = m->size - 1;
    for (uint32_t i = (hole + 1) & mask; m->slots[i].id; i = (i + 1) & mask) {
        uint32_t from = home(m, m->slots[i].id);
        if (((i - from) & mask) < ((i - hole) & mask))
            continue;
        m->slots[hole] = m->slots[i];
        hole = i;
    }
    m->slots[hole] = (struct idmap_entry){0};
}

void *idmap_del(struct idmap *m, uint32_t id)
{
    if (!m->used || !id)
        return NULL;
    uint32_t i = find(m, id);
    void *value = m->slots[i].value;
    if (!m->slots[i].id)
        return NULL;
    close_hole(m, i);
    m->used--;
    return value;
}
