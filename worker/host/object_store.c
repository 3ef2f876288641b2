// SPDX-License-Identifier: Apache-2.0
#include "worker/host/object_store.h"

#include "common/base/list.h"
#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/wire/ref.h"

#include <stdlib.h>

struct entry {
    struct kept_object object; // first
    struct list link;
    const void *owner;
};

struct object_store {
    size_t max, used;
    struct map by_id; // as text
    struct list all;
    struct rand rand;
};

struct object_store *object_store_new(size_t max_bytes, uint64_t seed)
{
    struct object_store *s = xcalloc(1, sizeof *s);
    s->max = max_bytes;
    list_init(&s->all);
    rand_seed(&s->rand, seed);
    return s;
}

static void drop(struct object_store *s, struct entry *e)
{
    char id[REF_ID_SIZE];
    ref_id_write(e->object.id, id);
    map_del(&s->by_id, id);
    list_remove(&e->link);
    s->used -= e->object.blob->len - e->object.offset + STORE_OBJECT_COST;
    blob_unref(e->object.blob);
    region_unref(e->object.values);
    free(e);
}

void object_store_free(struct object_store *s)
{
    if (!s)
        return;
    LIST_FOREACH(l, &s->all)
        drop(s, CONTAINER_OF(l, struct entry, link));
    map_done(&s->by_id);
    free(s);
}

static struct entry *find(const struct object_store *s, uint64_t id)
{
    char text[REF_ID_SIZE];
    ref_id_write(id, text);
    return map_get(&s->by_id, text);
}

// Ids are random, so a reference to an object of an earlier process finds nothing.
static uint64_t new_id(struct object_store *s)
{
    uint64_t id;
    do {
        id = rand_u64(&s->rand);
    } while (find(s, id));
    return id;
}

int object_store_put(struct object_store *s, const struct kept_object *what, const void *owner,
                     const struct kept_object **ret, struct err *err)
{
    size_t len = what->blob->len - what->offset;
    if (s->used + STORE_OBJECT_COST > s->max || len > s->max - s->used - STORE_OBJECT_COST)
        return err_set(err, ERR_LIMIT,
                       "StoreFull: no room for %zu bytes: %zu objects have %zu of the %zu bytes that this process "
                       "keeps; free some, end the sessions that made them, or raise CADRE_STORE_BYTES",
                       len, s->by_id.used, s->used, s->max);
    struct entry *e = xmalloc(sizeof *e);
    *e = (struct entry){.object = *what, .owner = owner};
    e->object.id = new_id(s);
    e->object.len = len + (what->values ? what->values->len : 0);
    blob_ref(what->blob);
    if (what->values)
        region_ref(what->values);
    char id[REF_ID_SIZE];
    ref_id_write(e->object.id, id);
    map_set(&s->by_id, id, e);
    list_append(&s->all, &e->link);
    s->used += len + STORE_OBJECT_COST;
    *ret = &e->object;
    return 0;
}

const struct kept_object *object_store_get(const struct object_store *s, uint64_t id)
{
    const struct entry *e = find(s, id);
    return e ? &e->object : NULL;
}

bool object_store_pin(struct object_store *s, uint64_t id)
{
    struct entry *e = find(s, id);
    if (e)
        e->object.pinned = true;
    return e != NULL;
}

bool object_store_drop(struct object_store *s, uint64_t id)
{
    struct entry *e = find(s, id);
    if (e)
        drop(s, e);
    return e != NULL;
}

size_t object_store_drop_owned(struct object_store *s, const void *owner)
{
    size_t n = 0;
    LIST_FOREACH(l, &s->all) {
        struct entry *e = CONTAINER_OF(l, struct entry, link);
        if (e->owner != owner || e->object.pinned)
            continue;
        drop(s, e);
        n++;
    }
    return n;
}
