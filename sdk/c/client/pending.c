// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/client/pending.h"

#include "common/base/mem.h"

#include <inttypes.h>
#include <stdlib.h>

enum { CHUNK = 64, ENTRY_BITS = 16, ENTRY_MASK = (1 << ENTRY_BITS) - 1, MOMENT_MS = 100 };

void pendings_init(struct pendings *t)
{
    *t = (struct pendings){0};
    list_init(&t->free);
}

void pendings_done(struct pendings *t)
{
    for (uint32_t i = 0; i < t->n_chunks; i++)
        free(t->chunks[i]);
    free(t->chunks);
}

static void add_chunk(struct pendings *t)
{
    struct pending *chunk = xcalloc(CHUNK, sizeof *chunk);
    t->chunks = xrealloc(t->chunks, t->n_chunks + 1, sizeof *t->chunks);
    t->chunks[t->n_chunks] = chunk;
    for (uint32_t i = 0; i < CHUNK; i++) {
        chunk[i].entry = t->n_chunks * CHUNK + i + 1;
        if (chunk[i].entry <= ENTRY_MASK) // no id has room for the last entry of the last chunk
            list_append(&t->free, &chunk[i].link);
    }
    t->n_chunks++;
}

struct pending *pendings_take(struct pendings *t)
{
    if (list_empty(&t->free))
        add_chunk(t);
    struct pending *p = CONTAINER_OF(list_pop(&t->free), struct pending, link);
    *p = (struct pending){.entry = p->entry, .id = ++t->last << ENTRY_BITS | p->entry};
    list_init(&p->link);
    t->used++;
    return p;
}

void pendings_give(struct pendings *t, struct pending *p)
{
    p->id = 0;
    list_append(&t->free, &p->link);
    t->used--;
}

static struct pending *find_entry(const struct pendings *t, uint64_t id)
{
    uint32_t entry = (uint32_t)(id & ENTRY_MASK);
    if (entry == 0 || entry > t->n_chunks * CHUNK)
        return NULL;
    struct pending *p = &t->chunks[(entry - 1) / CHUNK][(entry - 1) % CHUNK];
    return p->id ? p : NULL;
}

struct pending *pendings_find(const struct pendings *t, uint64_t id)
{
    struct pending *p = find_entry(t, id);
    return p && p->id == id ? p : NULL;
}

struct pending *pendings_of_wire(const struct pendings *t, uint32_t id)
{
    struct pending *p = find_entry(t, id);
    return p && (uint32_t)p->id == id ? p : NULL;
}

bool pendings_knows(const struct pendings *t, uint64_t id)
{
    uint32_t entry = (uint32_t)(id & ENTRY_MASK);
    uint64_t number = id >> ENTRY_BITS;
    return entry > 0 && entry <= t->n_chunks * CHUNK && number > 0 && number <= t->last;
}

// A moment does not count, so that messages show the number that the user has set.
static int64_t time_left(const struct pending *p, int64_t now)
{
    int64_t waited = now - p->created_ms;
    return waited <= MOMENT_MS ? p->timeout_ms : MAX(p->timeout_ms - waited, (int64_t)1);
}

void pending_write_head(const struct pending *p, int64_t now, struct buf *out)
{
    buf_puts(out, "{\"method\":\""); // buf_printf() would take a tenth of the time of a call
    buf_puts(out, p->method);
    if (p->group[0]) {
        buf_puts(out, "\",\"group\":\"");
        buf_puts(out, p->group);
    }
    buf_putc(out, '"');
    if (p->timeout_ms)
        buf_printf(out, ",\"timeoutMs\":%" PRId64, time_left(p, now));
    if (p->attempt)
        buf_printf(out, ",\"attempt\":%" PRId64, p->attempt);
    if (p->more)
        buf_puts(out, p->more);
    buf_puts(out, p->refuse ? ",\"whenNotReady\":\"Refuse\"}" : "}");
}
