// SPDX-License-Identifier: Apache-2.0
#include "worker/host/borrowed.h"

#include "common/base/mem.h"
#include "common/wire/batch.h"
#include "common/wire/batch_join.h"
#include "common/wire/ref.h"
#include "worker/host/borrow.h"
#include "worker/host/lending.h"

#include <stdlib.h>
#include <string.h>

struct item {
    size_t from, to; // in the arguments: what it takes the place of
    struct ref_part part;
    const char *at, *key, *owner; // in the arena; NULL where it is of this process
    int64_t until;
    struct blob *own;
    char *got;
    const char *data; // once it is there; where its values are on the device, the head alone
    struct region *values;
};

struct borrowed {
    struct arena arena;
    const char *args;
    size_t len;
    struct item *items;
    size_t n, size;
    uint64_t bytes;
    bool whole, join; // the arguments are one reference; or batches to be joined
    struct rank_device *device;
    char *made;
};

static int take_own(struct objects *o, struct item *it, struct err *err)
{
    const struct object *kept = store_get(objects_store(o), it->part.id);
    if (!kept)
        return err_set(
            err, ERR_NOT_FOUND,
            "the object that an argument refers to no longer exists: it was freed, or its session has ended");
    it->own = blob_ref(kept->blob);
    it->values = kept->values ? region_ref(kept->values) : NULL;
    it->data = kept->blob->data + kept->offset;
    it->part.bytes = kept->len;
    return 0;
}

static int take_place(struct borrowed *b, const struct ref_found *f, struct item *it, struct err *err)
{
    if (!f->at || !f->key || f->key_len != LENDING_KEY_LEN)
        return err_set(err, ERR_INVALID, "an argument is a reference that does not say where the object is");
    it->at = arena_strndup(&b->arena, f->at, f->at_len);
    it->key = arena_strndup(&b->arena, f->key, f->key_len);
    it->owner = f->owner ? arena_strndup(&b->arena, f->owner, f->owner_len) : "its owner";
    it->until = f->until;
    return 0;
}

static int add(struct borrowed *b, struct objects *o, const struct ref_found *f, struct err *err)
{
    struct ref ref;
    int r = ref_parse(f->text, f->text_len, &b->arena, &ref, err);
    if (r == 0 && ref.n != 1)
        r = err_set(err, ERR_INVALID, "an argument refers to the objects of %u ranks, not of one", ref.n);
    if (r == 0 && b->n == BORROWED_MAX)
        r = err_set(err, ERR_LIMIT, "more than %d references in the arguments of a call", BORROWED_MAX);
    if (r < 0)
        return r;
    if (b->n == b->size) {
        b->size = MAX(2 * b->size, (size_t)4);
        b->items = xrealloc(b->items, b->size, sizeof *b->items);
    }
    struct item *it = &b->items[b->n++];
    *it = (struct item){.from = (size_t)(f->json - b->args), .part = ref.parts[0]};
    it->to = it->from + f->len;
    r = objects_is_own(o, ref.uid, it->part.attempt, it->part.rank) ? take_own(o, it, err) : take_place(b, f, it, err);
    size_t most = objects_call_bytes(o);
    if (r == 0 && it->part.bytes > most - b->bytes)
        r = err_set(
            err, ERR_LIMIT,
            "the objects in the arguments of a call have more than %zu bytes together; CADRE_REFERENCE_BYTES in "
            "worker.env allows more",
            most);
    if (r == 0)
        b->bytes += it->part.bytes;
    return r;
}

int borrowed_new(struct objects *o, const char *args, size_t len, struct borrowed **ret, struct err *err)
{
    struct borrowed *b = xcalloc(1, sizeof *b);
    struct ref_found f;
    size_t at = 0;
    int r = 0;
    b->args = args;
    b->len = len;
    b->device = objects_device(o);
    b->whole = ref_is(args, len, &f);
    b->join = len > sizeof REF_JOIN && memcmp(args, REF_JOIN, sizeof REF_JOIN - 1) == 0;
    while (r == 0 && ref_next(args, len, &at, &f))
        r = add(b, o, &f, err);
    for (size_t i = 0; r == 0 && !b->whole && !b->join && i < b->n; i++)
        if (b->items[i].part.kind != REF_JSON)
            r = err_set(err, ERR_INVALID,
                        "a reference to a batch among other arguments: it can only be all the arguments of a call");
    if (r < 0) {
        borrowed_free(b);
        return r;
    }
    *ret = b;
    return 0;
}

// Of this process, and among others: it comes to the host.
static int download(struct borrowed *b, struct item *it, const atomic_bool *canceled, struct err *err)
{
    size_t head = (size_t)it->part.bytes - it->values->len;
    it->got = xmalloc((size_t)it->part.bytes);
    memcpy(it->got, it->data, head);
    it->data = it->got;
    return rank_device_download(b->device, it->got + head, it->values->memory, it->values->len, canceled, err);
}

// Only what is the arguments of the call alone may stay on the device, or come to it.
static int fetch(struct borrowed *b, struct item *it, const atomic_bool *canceled, struct err *err)
{
    if (it->data)
        return it->values && !b->whole ? download(b, it, canceled, err) : 0;
    bool to_device = b->whole && it->part.kind == REF_BATCH && rank_device_has_gpu(b->device);
    const struct borrow what = {.at = it->at,
                                .id = it->part.id,
                                .bytes = it->part.bytes,
                                .until = it->until,
                                .key = it->key,
                                .owner = it->owner,
                                .canceled = canceled,
                                .device = to_device ? b->device : NULL};
    it->got = xmalloc((size_t)it->part.bytes);
    it->data = it->got;
    return borrow(&what, it->got, &it->values, err);
}

// A value that is neither list nor object is the only argument, by position.
static bool stands_alone(const struct borrowed *b)
{
    const struct item *it = &b->items[0];
    return b->whole && (it->part.kind != REF_JSON || (it->part.bytes && (*it->data == '[' || *it->data == '{')));
}

static void splice(struct borrowed *b, size_t *ret_len)
{
    size_t at = 0, n = 0;
    b->made = xmalloc(b->len + (size_t)b->bytes + 2);
    if (b->whole)
        b->made[n++] = '[';
    for (size_t i = 0; i < b->n; i++) {
        const struct item *it = &b->items[i];
        if (!b->whole) {
            memcpy(b->made + n, b->args + at, it->from - at);
            n += it->from - at;
        }
        if (it->part.bytes)
            memcpy(b->made + n, it->data, (size_t)it->part.bytes);
        n += (size_t)it->part.bytes;
        at = it->to;
    }
    if (b->whole) {
        b->made[n++] = ']';
    } else {
        memcpy(b->made + n, b->args + at, b->len - at);
        n += b->len - at;
    }
    *ret_len = n;
}

// The rows of all of them, in one batch.
static int join(struct borrowed *b, size_t *ret_len, struct err *err)
{
    struct arena a = ARENA_INIT;
    struct batch *batches = arena_array(&a, b->n, sizeof *batches);
    struct batch_result *results = arena_array(&a, b->n, sizeof *results);
    struct scatter_source *sources = arena_array(&a, b->n, sizeof *sources);
    struct scatter doc;
    int r = 0;
    scatter_init(&doc);
    for (size_t i = 0; r == 0 && i < b->n; i++) {
        const struct item *it = &b->items[i];
        sources[i] = (struct scatter_source){it->part.bytes ? it->data : "", (size_t)it->part.bytes};
        results[i] = (struct batch_result){.batch = &batches[i], .rank = it->part.rank};
        r = batch_read(sources[i].data, sources[i].len, &a, &batches[i], err);
    }
    if (r == 0)
        r = batch_join(results, b->n, 0, &a, &doc, err);
    if (r == 0) {
        b->made = xmalloc(MAX(doc.len, (size_t)1));
        scatter_gather(&doc, sources, b->made);
        *ret_len = doc.len;
    } else {
        err_wrap(err, "the parts of the reference");
    }
    scatter_done(&doc);
    arena_done(&a);
    return r;
}

int borrowed_fetch(struct borrowed *b, const atomic_bool *canceled, const char **ret, size_t *ret_len,
                   struct region **ret_values, struct err *err)
{
    int r = 0;
    *ret_values = NULL;
    for (size_t i = 0; r == 0 && i < b->n; i++)
        r = fetch(b, &b->items[i], canceled, err);
    if (r < 0 || b->n == 0) {
        *ret = b->args;
        *ret_len = b->len;
        return r;
    }
    if (b->join) {
        r = join(b, ret_len, err);
        *ret = b->made;
    } else if (stands_alone(b)) {
        *ret = b->items[0].data;
        *ret_len = (size_t)b->items[0].part.bytes;
        *ret_values = b->items[0].values;
    } else {
        splice(b, ret_len);
        *ret = b->made;
    }
    return r;
}

void borrowed_free(struct borrowed *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->n; i++) {
        blob_unref(b->items[i].own);
        region_unref(b->items[i].values);
        free(b->items[i].got);
    }
    free(b->items);
    free(b->made);
    arena_done(&b->arena);
    free(b);
}
