// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/collect.h"

#include "common/wire/batch.h"
#include "common/wire/batch_join.h"
#include "common/wire/body_list.h"
#include "operator/proxy/answer.h"
#include "operator/proxy/dispatch_plan.h"

#include <string.h>

enum { ONLY_MAX = 1024 }; // bytes of a result that are rather copied than kept

struct collection {
    struct call *c;
    uint32_t n; // results that are wanted
};

static uint32_t rank_of(const struct collection *l, uint32_t i)
{
    const struct call *c = l->c;
    return c->plan ? c->plan->d.keep[i] : c->req.first + i;
}

static struct record_part part_of(const struct collection *l, uint32_t i)
{
    const struct call *c = l->c;
    const struct call_slot *slot = &c->slots[rank_of(l, i) - c->req.first];
    return call_slot_result(slot);
}

static struct scatter_source bytes_of(const struct collection *l, uint32_t i)
{
    const struct record_part part = part_of(l, i);
    return (struct scatter_source){part.len ? part.blob->data + part.offset : "", part.len};
}

static bool is_null(const struct scatter_source *s)
{
    return s->len == 0 || (s->len == 4 && memcmp(s->data, "null", 4) == 0);
}

static int no_room(const struct collection *l, struct err *err)
{
    return err_set(err, ERR_LIMIT, "%s() of %s ran, but all results together exceed the memory of this client",
                   l->c->req.method, l->c->group->key);
}

// Lists

static struct record_part mark_part(const struct collection *l, size_t offset, size_t len)
{
    return (struct record_part){.blob = l->c->router->marks, .offset = offset, .len = len};
}

static int answer_json(const struct collection *l, struct err *err)
{
    struct record_part *parts = router_parts(l->c->router, 2 * (size_t)l->n + 1);
    size_t n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct record_part part = part_of(l, i);
        parts[n++] = mark_part(l, i ? CALL_MARK_COMMA : CALL_MARK_OPEN, 1);
        parts[n++] = part.len ? part : mark_part(l, CALL_MARK_NULL, CALL_MARK_NULL_LEN);
    }
    parts[n++] = mark_part(l, CALL_MARK_CLOSE, 1);
    return answer_send(l->c, parts, n, err);
}

// Sends a document whose sources are the results.
static int answer_scatter(const struct collection *l, const struct scatter *doc, struct err *err)
{
    struct record_part *parts = router_parts(l->c->router, doc->n_parts);
    struct blob *own = blob_copy(doc->own.data, doc->own.len, l->c->quota);
    if (!own)
        return no_room(l, err);
    for (size_t i = 0; i < doc->n_parts; i++) {
        const struct scatter_part *part = &doc->parts[i];
        parts[i] = (struct record_part){own, part->offset, part->len};
        if (part->source != SCATTER_OWN) {
            const struct record_part source = part_of(l, part->source);
            parts[i].blob = source.blob;
            parts[i].offset += source.offset;
        }
    }
    int r = answer_send(l->c, parts, doc->n_parts, err);
    blob_unref(own);
    return r;
}

static int answer_bodies(const struct collection *l, struct err *err)
{
    struct scatter doc;
    scatter_init(&doc);
    body_list_begin(&doc, l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        const struct record_part part = part_of(l, i);
        body_list_before(&doc, part.len);
        scatter_add(&doc, i, 0, part.len);
        body_list_behind(&doc, part.len);
    }
    int r = answer_scatter(l, &doc, err);
    scatter_done(&doc);
    return r;
}

static int answer_list(const struct collection *l, struct err *err)
{
    bool json = true;
    for (uint32_t i = 0; i < l->n && json; i++) {
        const struct scatter_source s = bytes_of(l, i);
        json = !batch_is_safetensors(s.data, s.len) && !body_list_is(s.data, s.len);
    }
    return json ? answer_json(l, err) : answer_bodies(l, err);
}

// Batches

static int read_batches(const struct collection *l, struct batch_result *results, struct arena *a, struct err *err)
{
    const struct dispatch_plan *d = l->c->plan;
    struct batch *batches = arena_array(a, l->n, sizeof *batches);
    size_t cells = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct scatter_source s = bytes_of(l, i);
        uint32_t rank = rank_of(l, i);
        int r = batch_read(s.data, s.len, a, &batches[i], err);
        cells += r < 0 ? 0 : batches[i].n_cells;
        if (r == 0 && cells > BATCH_CELLS_MAX)
            r = err_set(err, ERR_LIMIT, "the columns of all results together have more than %zu values",
                        BATCH_CELLS_MAX);
        if (r < 0)
            return err_wrap(err, "rank %u ran %s(), but its result cannot be joined with the others", rank,
                            l->c->req.method);
        results[i] =
            (struct batch_result){&batches[i], rank, d->added ? batch_padding(d->rows, d->each, d->d.chunk[rank]) : 0};
    }
    return 0;
}

static int join(const struct collection *l, struct arena *a, struct err *err)
{
    const struct dispatch_plan *d = l->c->plan;
    struct batch_result *results = arena_array(a, l->n, sizeof *results);
    struct scatter doc;
    int r = read_batches(l, results, a, err);
    if (r < 0)
        return r;
    scatter_init(&doc);
    r = batch_join(results, l->n, d->added ? d->each : 0, a, &doc, err);
    r = r < 0 ? err_wrap(err, "%s() of %s ran", l->c->req.method, l->c->group->key) : answer_scatter(l, &doc, err);
    scatter_done(&doc);
    return r;
}

static int answer_joined(const struct collection *l, struct err *err)
{
    uint32_t nulls = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct scatter_source s = bytes_of(l, i);
        nulls += is_null(&s);
    }
    if (nulls == l->n) { // a method that returns nothing
        const struct record_part null = mark_part(l, CALL_MARK_NULL, CALL_MARK_NULL_LEN);
        return answer_send(l->c, &null, 1, err);
    }
    struct arena a = ARENA_INIT;
    int r = join(l, &a, err);
    arena_done(&a);
    return r;
}

int collect(struct call *c, struct err *err)
{
    const struct collection l = {c, c->plan ? c->plan->d.n_keep : c->n};
    return c->plan && c->plan->d.join ? answer_joined(&l, err) : answer_list(&l, err);
}

bool collect_only(struct call *c, const struct call_body *body)
{
    char list[ONLY_MAX + 2];
    size_t n = 0;
    if (c->n > 1 || c->plan || c->answer.join || body->len > ONLY_MAX || batch_is_safetensors(body->data, body->len) ||
        body_list_is(body->data, body->len))
        return false;
    list[n++] = '[';
    memcpy(list + n, body->len ? body->data : "null", body->len ? body->len : 4);
    n += body->len ? body->len : 4;
    list[n++] = ']';
    c->stat.bytes_out += n;
    answer_send_copy(c, &(struct record_header){.type = RECORD_RESULT, .call = c->req.id, .rank = RECORD_GROUP}, list,
                     n);
    return true;
}
