// SPDX-License-Identifier: Apache-2.0
#include "worker/host/arg_refs.h"

#include "common/base/mem.h"
#include "common/wire/batch.h"
#include "common/wire/batch_join.h"
#include "common/wire/ref.h"
#include "worker/host/object_fetch.h"
#include "worker/host/peer_wire.h"

#include <stdlib.h>
#include <string.h>

struct arg_ref {
    size_t from, to; // the bytes of the arguments that it replaces
    struct ref_part part;
    const char *at, *key, *owner; // in the arena; NULL if the object is in this process
    int64_t until;
    struct blob *own;
    char *got;
    const char *data; // set when the object is there; if its values are on the device, only the head
    struct region *values;
};

struct arg_refs {
    struct arena arena;
    const char *args;
    size_t len;
    struct arg_ref *items;
    size_t n, size;
    uint64_t bytes;
    bool whole, join; // whole: the arguments are one reference; join: they are batches to be joined
    struct rank_device *device;
    char *made;
};

// The store knows the length and the kind. The client may say others in its reference.
static int take_own(struct objects *o, struct arg_ref *it, struct err *err)
{
    const struct kept_object *kept = object_store_get(o->store, it->part.id);
    if (!kept)
        return err_set(
            err, ERR_NOT_FOUND,
            "the object that an argument refers to no longer exists: it was freed, or its session has ended");
    it->own = blob_ref(kept->blob);
    it->values = kept->values ? region_ref(kept->values) : NULL;
    it->data = kept->blob->data + kept->offset;
    it->part.bytes = kept->len;
    it->part.kind = objects_kind(kept);
    return 0;
}

static int take_place(struct arg_refs *refs, const struct ref_found *f, struct arg_ref *it, struct err *err)
{
    if (!f->at || !f->key || f->key_len != PEER_KEY_LEN)
        return err_set(err, ERR_INVALID, "an argument is a reference that does not say where the object is");
    it->at = arena_strndup(&refs->arena, f->at, f->at_len);
    it->key = arena_strndup(&refs->arena, f->key, f->key_len);
    it->owner = f->owner ? arena_strndup(&refs->arena, f->owner, f->owner_len) : "its owner";
    it->until = f->until;
    return 0;
}

static int add(struct arg_refs *refs, struct objects *o, const struct ref_found *f, struct err *err)
{
    struct ref ref;
    int r = ref_parse(f->text, f->text_len, &refs->arena, &ref, err);
    if (r == 0 && ref.n != 1)
        r = err_set(err, ERR_INVALID, "an argument refers to the objects of %u ranks, not of one", ref.n);
    if (r == 0 && refs->n == ARG_REFS_MAX)
        r = err_set(err, ERR_LIMIT, "more than %d references in the arguments of a call", ARG_REFS_MAX);
    if (r < 0)
        return r;
    MEM_GROW(refs->items, refs->n, refs->size);
    struct arg_ref *it = &refs->items[refs->n++];
    *it = (struct arg_ref){.from = (size_t)(f->json - refs->args), .part = ref.parts[0]};
    it->to = it->from + f->len;
    r = objects_is_own(o, ref.uid, it->part.attempt, it->part.rank) ? take_own(o, it, err)
                                                                    : take_place(refs, f, it, err);
    size_t most = o->config.call_bytes;
    if (r == 0 && it->part.bytes > most - refs->bytes)
        r = err_set(
            err, ERR_LIMIT,
            "the objects in the arguments of a call have more than %zu bytes together; CADRE_REFERENCE_BYTES in "
            "worker.env allows more",
            most);
    if (r == 0)
        refs->bytes += it->part.bytes;
    return r;
}

int arg_refs_new(struct objects *o, const char *args, size_t len, struct arg_refs **ret, struct err *err)
{
    struct arg_refs *refs = xcalloc(1, sizeof *refs);
    struct ref_found f;
    size_t at = 0;
    int r = 0;
    refs->args = args;
    refs->len = len;
    refs->device = o->config.device;
    refs->whole = ref_is(args, len, &f);
    refs->join = len > sizeof REF_JOIN && memcmp(args, REF_JOIN, sizeof REF_JOIN - 1) == 0;
    while (r == 0 && ref_next(args, len, &at, &f))
        r = add(refs, o, &f, err);
    for (size_t i = 0; r == 0 && !refs->whole && !refs->join && i < refs->n; i++)
        if (refs->items[i].part.kind != REF_JSON)
            r = err_set(err, ERR_INVALID,
                        "a reference to a batch among other arguments: it can only be all the arguments of a call");
    if (r < 0) {
        arg_refs_free(refs);
        return r;
    }
    *ret = refs;
    return 0;
}

// The object is in this process, and is not the only argument: it is copied to the host.
static int download(struct arg_refs *refs, struct arg_ref *it, const atomic_bool *canceled, struct err *err)
{
    size_t head = (size_t)it->part.bytes - it->values->len;
    it->got = xmalloc((size_t)it->part.bytes);
    memcpy(it->got, it->data, head);
    it->data = it->got;
    return rank_device_download(refs->device, it->got + head, it->values->memory, it->values->len, canceled, err);
}

// Values may stay on the device, or come to it, only if one reference is all the arguments.
static int fetch(struct arg_refs *refs, struct arg_ref *it, const atomic_bool *canceled, struct err *err)
{
    if (it->data)
        return it->values && !refs->whole ? download(refs, it, canceled, err) : 0;
    bool to_device = refs->whole && it->part.kind == REF_BATCH && rank_device_has_gpu(refs->device);
    const struct object_fetch what = {.at = it->at,
                                      .id = it->part.id,
                                      .bytes = it->part.bytes,
                                      .until = it->until,
                                      .key = it->key,
                                      .owner = it->owner,
                                      .canceled = canceled,
                                      .device = to_device ? refs->device : NULL};
    it->got = xmalloc((size_t)it->part.bytes);
    it->data = it->got;
    return object_fetch(&what, it->got, &it->values, err);
}

// A value that is neither a list nor an object becomes the only argument, by position. If there are values on the
// device, `data` has fewer bytes than the object, and cannot be put into a list.
static bool stands_alone(const struct arg_refs *refs)
{
    const struct arg_ref *it = &refs->items[0];
    bool in_list = it->part.kind == REF_JSON && (!it->part.bytes || (*it->data != '[' && *it->data != '{'));
    return refs->whole && (it->values || !in_list);
}

static void splice(struct arg_refs *refs, size_t *ret_len)
{
    size_t at = 0, n = 0;
    refs->made = xmalloc(refs->len + (size_t)refs->bytes + 2);
    if (refs->whole)
        refs->made[n++] = '[';
    for (size_t i = 0; i < refs->n; i++) {
        const struct arg_ref *it = &refs->items[i];
        if (!refs->whole) {
            memcpy(refs->made + n, refs->args + at, it->from - at);
            n += it->from - at;
        }
        if (it->part.bytes)
            memcpy(refs->made + n, it->data, (size_t)it->part.bytes);
        n += (size_t)it->part.bytes;
        at = it->to;
    }
    if (refs->whole) {
        refs->made[n++] = ']';
    } else {
        memcpy(refs->made + n, refs->args + at, refs->len - at);
        n += refs->len - at;
    }
    *ret_len = n;
}

// Joins the rows of all batches into one batch.
static int join(struct arg_refs *refs, size_t *ret_len, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct batch *batches = arena_array(&a, refs->n, sizeof *batches);
    struct batch_result *results = arena_array(&a, refs->n, sizeof *results);
    struct scatter_source *sources = arena_array(&a, refs->n, sizeof *sources);
    _cleanup_(scatter_done) struct scatter doc = SCATTER_INIT;
    int r = 0;
    for (size_t i = 0; r == 0 && i < refs->n; i++) {
        const struct arg_ref *it = &refs->items[i];
        sources[i] = (struct scatter_source){it->part.bytes ? it->data : "", (size_t)it->part.bytes};
        results[i] = (struct batch_result){.batch = &batches[i], .rank = it->part.rank};
        r = batch_read(sources[i].data, sources[i].len, &a, &batches[i], err);
    }
    if (r == 0)
        r = batch_join(results, refs->n, 0, &a, &doc, err);
    if (r == 0) {
        refs->made = xmalloc(MAX(doc.len, (size_t)1));
        scatter_gather(&doc, sources, refs->made);
        *ret_len = doc.len;
    } else {
        err_wrap(err, "the parts of the reference");
    }
    return r;
}

int arg_refs_fetch(struct arg_refs *refs, const atomic_bool *canceled, const char **ret, size_t *ret_len,
                   struct region **ret_values, struct err *err)
{
    int r = 0;
    *ret_values = NULL;
    for (size_t i = 0; r == 0 && i < refs->n; i++)
        r = fetch(refs, &refs->items[i], canceled, err);
    if (r < 0 || refs->n == 0) {
        *ret = refs->args;
        *ret_len = refs->len;
        return r;
    }
    if (refs->join) {
        r = join(refs, ret_len, err);
        *ret = refs->made;
    } else if (stands_alone(refs)) {
        *ret = refs->items[0].data;
        *ret_len = (size_t)refs->items[0].part.bytes;
        *ret_values = refs->items[0].values;
    } else {
        splice(refs, ret_len);
        *ret = refs->made;
    }
    return r;
}

void arg_refs_free(struct arg_refs *refs)
{
    if (!refs)
        return;
    for (size_t i = 0; i < refs->n; i++) {
        blob_unref(refs->items[i].own);
        region_unref(refs->items[i].values);
        free(refs->items[i].got);
    }
    free(refs->items);
    free(refs->made);
    arena_done(&refs->arena);
    free(refs);
}
