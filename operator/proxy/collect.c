// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/collect.h"

#include "common/base/fiber.h"
#include "common/base/mem.h"
#include "common/wire/batch.h"
#include "common/wire/batch_join.h"
#include "common/wire/body_list.h"
#include "operator/proxy/answer.h"
#include "operator/proxy/dispatch_plan.h"
#include "operator/proxy/job.h"

#include <stdlib.h>
#include <string.h>

enum {
    ONLY_MAX = 1024, // bytes of a result that are rather copied than kept
    FEW = 32         // results that need no memory of their own
};

struct wanted { // a result that is a part of the answer
    struct record_part part;
    uint32_t rank;
    size_t padding; // rows of it
};

// It does not know the call, which may end while long results are joined.
struct results {
    const char *method, *group; // borrowed
    struct quota *quota;        // likewise
    size_t each;                // rows that each rank was given, where some of them are padding; else 0
    uint32_t n;
    size_t len; // of all together
    struct wanted *wanted;
};

static uint32_t count(const struct call *c)
{
    return c->plan ? c->plan->d.n_keep : c->n;
}

static void list_results(const struct call *c, struct wanted *wanted, struct results *ret)
{
    const struct dispatch_plan *d = c->plan;
    *ret = (struct results){.method = c->req.method,
                            .group = c->group->key,
                            .quota = c->quota,
                            .each = d && d->added ? d->each : 0,
                            .n = count(c),
                            .wanted = wanted};
    for (uint32_t i = 0; i < ret->n; i++) {
        uint32_t rank = d ? d->d.keep[i] : c->req.first + i;
        wanted[i] = (struct wanted){call_slot_result(&c->slots[rank - c->req.first]), rank,
                                    ret->each ? batch_padding(d->rows, d->each, d->d.chunk[rank]) : 0};
        ret->len += wanted[i].part.len;
    }
}

static struct scatter_source bytes_of(const struct wanted *w)
{
    return (struct scatter_source){w->part.len ? w->part.blob->data + w->part.offset : "", w->part.len};
}

static bool is_null(const struct scatter_source *s)
{
    return s->len == 0 || (s->len == 4 && memcmp(s->data, "null", 4) == 0);
}

static int no_room(const struct results *l, struct err *err)
{
    return err_set(err, ERR_LIMIT, "%s() of %s ran, but all results together exceed the memory of this client",
                   l->method, l->group);
}

// Lists

static struct record_part mark_part(const struct call *c, size_t offset, size_t len)
{
    return (struct record_part){.blob = c->router->marks, .offset = offset, .len = len};
}

static int answer_json(struct call *c, const struct results *l, struct err *err)
{
    struct record_part *parts = router_parts(c->router, 2 * (size_t)l->n + 1);
    size_t n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct record_part part = l->wanted[i].part;
        parts[n++] = mark_part(c, i ? CALL_MARK_COMMA : CALL_MARK_OPEN, 1);
        parts[n++] = part.len ? part : mark_part(c, CALL_MARK_NULL, CALL_MARK_NULL_LEN);
    }
    parts[n++] = mark_part(c, CALL_MARK_CLOSE, 1);
    return answer_send(c, parts, n, err);
}

// Sends a document whose sources are the results. `own`: its own bytes.
static int answer_scatter(struct call *c, const struct results *l, const struct scatter *doc, struct blob *own,
                          struct err *err)
{
    struct record_part *parts = router_parts(c->router, doc->n_parts);
    for (size_t i = 0; i < doc->n_parts; i++) {
        const struct scatter_part *part = &doc->parts[i];
        parts[i] = (struct record_part){own, part->offset, part->len};
        if (part->source != SCATTER_OWN) {
            const struct record_part source = l->wanted[part->source].part;
            parts[i].blob = source.blob;
            parts[i].offset += source.offset;
        }
    }
    return answer_send(c, parts, doc->n_parts, err);
}

static int own_bytes(const struct results *l, const struct scatter *doc, struct blob **ret, struct err *err)
{
    *ret = blob_new(doc->own.len, l->quota);
    if (!*ret)
        return no_room(l, err);
    fiber_copy((*ret)->data, doc->own.data, doc->own.len);
    return 0;
}

static int answer_bodies(struct call *c, const struct results *l, struct err *err)
{
    struct scatter doc;
    struct blob *own;
    scatter_init(&doc);
    body_list_begin(&doc, l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        const struct record_part part = l->wanted[i].part;
        body_list_before(&doc, part.len);
        scatter_add(&doc, i, 0, part.len);
        body_list_behind(&doc, part.len);
    }
    int r = own_bytes(l, &doc, &own, err);
    if (r == 0)
        r = answer_scatter(c, l, &doc, own, err);
    blob_unref(own);
    scatter_done(&doc);
    return r;
}

static int answer_list(struct call *c, const struct results *l, struct err *err)
{
    bool json = true;
    for (uint32_t i = 0; i < l->n && json; i++) {
        const struct scatter_source s = bytes_of(&l->wanted[i]);
        json = !batch_is_safetensors(s.data, s.len) && !body_list_is(s.data, s.len);
    }
    return json ? answer_json(c, l, err) : answer_bodies(c, l, err);
}

// Batches

static int read_batches(const struct results *l, struct batch_result *ret, struct arena *a, struct err *err)
{
    struct batch *batches = arena_array(a, l->n, sizeof *batches);
    size_t cells = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct scatter_source s = bytes_of(&l->wanted[i]);
        int r = batch_read(s.data, s.len, a, &batches[i], err);
        cells += r < 0 ? 0 : batches[i].n_cells;
        if (r == 0 && cells > BATCH_CELLS_MAX)
            r = err_set(err, ERR_LIMIT, "the columns of all results together have more than %zu values",
                        BATCH_CELLS_MAX);
        if (r < 0)
            return err_wrap(err, "rank %u ran %s(), but its result cannot be joined with the others", l->wanted[i].rank,
                            l->method);
        ret[i] = (struct batch_result){&batches[i], l->wanted[i].rank, l->wanted[i].padding};
    }
    return 0;
}

// `ret` and *ret_own are to be freed in any case.
static int join(const struct results *l, struct scatter *ret, struct blob **ret_own, struct err *err)
{
    struct arena a = ARENA_INIT;
    struct batch_result *batches = arena_array(&a, l->n, sizeof *batches);
    scatter_init(ret);
    *ret_own = NULL;
    int r = read_batches(l, batches, &a, err);
    if (r == 0 && batch_join(batches, l->n, l->each, &a, ret, err) < 0)
        r = err_wrap(err, "%s() of %s ran", l->method, l->group);
    if (r == 0)
        r = own_bytes(l, ret, ret_own, err);
    arena_done(&a);
    return r;
}

static int answer_joined(struct call *c, const struct results *l, struct err *err)
{
    struct scatter doc;
    struct blob *own;
    int r = join(l, &doc, &own, err);
    if (r == 0)
        r = answer_scatter(c, l, &doc, own, err);
    blob_unref(own);
    scatter_done(&doc);
    return r;
}

// Long ones

struct collection {
    struct job job;
    bool over, unwanted; // unwanted: the call has ended
    struct results results;
    struct scatter doc;
    struct blob *own;
    struct err err;
    struct wanted wanted[]; // with references to their blobs
};

static void collection_free(struct collection *l)
{
    for (uint32_t i = 0; i < l->results.n; i++)
        blob_unref(l->wanted[i].part.blob);
    quota_unref(l->results.quota);
    scatter_done(&l->doc);
    blob_unref(l->own);
    free((char *)l->results.method);
    free((char *)l->results.group);
    free(l);
}

static void on_work(struct job *j)
{
    struct collection *l = CONTAINER_OF(j, struct collection, job);
    if (!l->unwanted)
        (void)join(&l->results, &l->doc, &l->own, &l->err);
}

static void on_done(struct job *j)
{
    struct collection *l = CONTAINER_OF(j, struct collection, job);
    l->over = true;
    if (l->unwanted)
        collection_free(l);
}

static void collection_begin(struct call *c, const struct results *of)
{
    struct collection *l = xcalloc(1, sizeof *l + of->n * sizeof *l->wanted);
    *l = (struct collection){.job = {.work = on_work, .done = on_done}, .results = *of, .err = ERR_INIT};
    memcpy(l->wanted, of->wanted, of->n * sizeof *l->wanted);
    for (uint32_t i = 0; i < of->n; i++)
        if (l->wanted[i].part.blob)
            blob_ref(l->wanted[i].part.blob);
    l->results.wanted = l->wanted;
    l->results.quota = quota_ref(of->quota);
    l->results.method = xstrdup(of->method);
    l->results.group = xstrdup(of->group);
    c->answer.collection = l;
    job_begin(&l->job, c->tenant);
}

void collect_forget(struct call *c)
{
    struct collection *l = TAKE_PTR(c->answer.collection);
    if (!l)
        return;
    l->unwanted = true;
    if (l->over)
        collection_free(l);
}

static int go_on(struct call *c, struct err *err)
{
    struct collection *l = c->answer.collection;
    if (!l->over)
        return COLLECT_LATER;
    *err = l->err;
    int r = err->code ? err->code : answer_scatter(c, &l->results, &l->doc, l->own, err);
    collect_forget(c);
    return r;
}

static bool all_null(const struct results *l)
{
    uint32_t nulls = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct scatter_source s = bytes_of(&l->wanted[i]);
        nulls += is_null(&s);
    }
    return nulls == l->n;
}

static int collect_now(struct call *c, const struct results *l, struct err *err)
{
    if (!c->plan || !c->plan->d.join)
        return answer_list(c, l, err);
    if (all_null(l)) { // a method that returns nothing
        const struct record_part null = mark_part(c, CALL_MARK_NULL, CALL_MARK_NULL_LEN);
        return answer_send(c, &null, 1, err);
    }
    if (l->len <= JOB_STEP)
        return answer_joined(c, l, err);
    collection_begin(c, l);
    return COLLECT_LATER;
}

int collect(struct call *c, struct err *err)
{
    struct wanted few[FEW];
    struct results l;
    if (c->answer.collection)
        return go_on(c, err);
    uint32_t n = count(c);
    struct wanted *wanted = n <= FEW ? few : xmalloc(n * sizeof *wanted);
    list_results(c, wanted, &l);
    int r = collect_now(c, &l, err);
    if (wanted != few)
        free(wanted);
    return r;
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
