// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/join.h"

#include "common/base/fiber.h"
#include "common/base/mem.h"
#include "common/wire/batch.h"
#include "common/wire/batch_join.h"
#include "operator/proxy/answer.h"
#include "operator/proxy/dispatch_plan.h"
#include "operator/proxy/job.h"

#include <stdlib.h>
#include <string.h>

struct source { // a result that is part of the answer
    uint32_t rank;
    size_t padding; // rows of padding at its end
    bool begun;     // its head has arrived
    bool read;      // its head was read
    struct batch batch;
    struct record_part *parts; // bytes that wait, from part `next` on
    size_t next, n, size;
    size_t waits;     // how many bytes wait
    size_t at, got;   // where in the document these bytes begin; how much of it has arrived in all
    bool complete;    // all of it has arrived
    struct blob *all; // the whole document, if it is put together
};

struct join {
    struct job job;       // reads and joins long heads
    bool working, over;   // the job was begun; the job is over
    bool unwanted;        // the call has ended
    char *method, *group; // of the call, for messages
    struct quota *quota;
    struct err err;
    struct arena memory; // contains the heads
    size_t charged;      // for `memory`
    size_t cells;
    size_t each; // rows that each rank was given, if some of them are padding; else 0
    uint32_t n, begun;
    bool started, whole; // whole: all sources are put together, and everything is sent at the end
    bool in_order;       // the document needs the segments of each source in their order
    struct scatter doc;  // what to send: segments of one source after the other
    struct blob *own;
    size_t part, part_sent;
    uint32_t *index; // of each rank's source; UINT32_MAX = its result is not part of the answer
    struct source sources[];
};

static struct source *source_of(const struct call *c, uint32_t rank)
{
    return c->join && c->join->index[rank] != UINT32_MAX ? &c->join->sources[c->join->index[rank]] : NULL;
}

static int no_room(const struct join *j, struct err *err)
{
    return err_set(err, ERR_LIMIT, "%s() of %s ran, but all results together exceed the memory of this client",
                   j->method, j->group);
}

static void drop_all(struct source *s)
{
    while (s->next < s->n)
        blob_unref(s->parts[s->next++].blob);
    s->at += s->waits;
    s->waits = 0;
}

static void free_all(struct join *j)
{
    for (uint32_t i = 0; i < j->n; i++) {
        drop_all(&j->sources[i]);
        free(j->sources[i].parts);
        blob_unref(j->sources[i].all);
    }
    scatter_done(&j->doc);
    quota_refund(j->quota, j->charged);
    quota_unref(j->quota);
    arena_done(&j->memory);
    blob_unref(j->own);
    free(j->method);
    free(j->group);
    free(j->index);
    free(j);
}

// Taking results

bool join_takes(const struct call_rank *rank, const struct call_body *piece, size_t *want)
{
    const struct call *c = rank->call;
    struct err err = ERR_INIT;
    *want = 0;
    if (c->req.single || c->session->whole || !c->plan || !c->plan->d.join)
        return false;
    if (piece->len < SAFETENSORS_PREFIX)
        *want = SAFETENSORS_PREFIX;
    else if (!batch_is_safetensors(piece->data, piece->len) || safetensors_head_len(piece->data, want, &err) < 0)
        *want = 0;
    return *want && piece->len >= *want;
}

static struct join *join_new(const struct call *c)
{
    const struct dispatch *d = &c->plan->d;
    struct join *j = xcalloc(1, sizeof *j + d->n_keep * sizeof *j->sources);
    j->method = xstrdup(c->req.method);
    j->group = xstrdup(c->group->key);
    j->quota = quota_ref(c->quota);
    j->each = c->plan->added ? c->plan->each : 0;
    j->n = d->n_keep;
    j->index = xmalloc(d->world * sizeof *j->index);
    memset(j->index, 0xff, d->world * sizeof *j->index);
    for (uint32_t i = 0; i < d->n_keep; i++)
        j->index[d->keep[i]] = i;
    j->doc = SCATTER_INIT;
    return j;
}

static void push(struct source *s, const struct record_part *part)
{
    if (s->n == s->size) {
        s->n -= s->next;
        if (s->n)
            memmove(s->parts, s->parts + s->next, s->n * sizeof *s->parts);
        s->next = 0;
        if (s->n > s->size / 2 || !s->size) {
            s->size = MAX(s->size * 2, (size_t)8);
            s->parts = xrealloc(s->parts, s->size, sizeof *s->parts);
        }
    }
    s->parts[s->n++] = *part;
    blob_ref(part->blob);
    s->waits += part->len;
    s->got += part->len;
}

// Removes n bytes. All of them have arrived.
static void drop(struct source *s, size_t n)
{
    s->at += n;
    s->waits -= n;
    while (n) {
        struct record_part *p = &s->parts[s->next];
        size_t take = MIN(n, p->len);
        p->offset += take;
        p->len -= take;
        n -= take;
        if (p->len == 0)
            blob_unref(s->parts[s->next++].blob);
    }
}

static int unfit(const struct join *j, uint32_t rank, struct err *err)
{
    return err_wrap(err, "rank %u ran %s(), but its result cannot be joined with the others", rank, j->method);
}

static int count_cells(struct join *j, const struct batch *b, struct err *err)
{
    j->cells += b->n_cells;
    return j->cells <= BATCH_CELLS_MAX
               ? 0
               : err_set(err, ERR_LIMIT, "the columns of all results together have more than %zu values",
                         BATCH_CELLS_MAX);
}

static int charge(struct join *j, struct err *err)
{
    if (!quota_charge(j->quota, j->memory.used - j->charged))
        return no_room(j, err);
    j->charged = j->memory.used;
    return 0;
}

// Reads the head of a result that is arriving, or all of a result that arrived in one piece.
static int read_source(struct join *j, struct source *s, struct err *err)
{
    const struct record_part part = s->next < s->n ? s->parts[s->next] : (struct record_part){0};
    const char *data = part.len ? part.blob->data + part.offset : "";
    int r = s->begun ? batch_read_head(data, part.len, &j->memory, &s->batch, err)
                     : batch_read(data, part.len, &j->memory, &s->batch, err);
    s->read = true;
    return r < 0 ? r : count_cells(j, &s->batch, err);
}

static int begin(struct join *j, struct source *s, const struct record_part *part, struct err *err)
{
    struct err ignored = ERR_INIT;
    size_t head = 0;
    s->begun = true;
    j->begun++;
    (void)safetensors_head_len(part->blob->data + part->offset, &head, &ignored);
    if (head > JOB_STEP) // the job reads it with the others
        return 0;
    int r = read_source(j, s, err);
    return r < 0 ? r : charge(j, err);
}

// Copies the part behind `all`.
static int append(const struct join *j, struct source *s, const struct record_part *part, struct err *err)
{
    if (!s->all)
        s->all = blob_new(0, j->quota);
    if (!blob_reserve(s->all, part->len))
        return no_room(j, err);
    memcpy(s->all->data + s->all->len, part->blob->data + part->offset, part->len);
    s->all->len += part->len;
    return 0;
}

// Checks that no more has arrived than the head says. `last`: nothing more will arrive, so exactly that much must be
// there.
static int check_length(const struct source *s, bool last, struct err *err)
{
    size_t len = s->batch.doc.len;
    if (s->got <= len && (!last || s->got == len))
        return 0;
    return err_set(err, ERR_INVALID, "safetensors: a document of %s%zu bytes, but its tensors end at byte %zu",
                   last ? "" : "more than ", last ? s->got : len, len);
}

void join_open(struct call *c)
{
    if (c->join)
        return;
    c->join = join_new(c);
    if (list_empty(&c->flowing)) // the join continues when the client reads
        list_append(&c->router->flowing, &c->flowing);
}

int join_add(struct call_rank *rank, const struct record_part *part, bool last, struct err *err)
{
    struct call *c = rank->call;
    uint32_t number = rank->member->rank;
    join_open(c);
    struct join *j = c->join;
    struct source *s = source_of(c, number);
    bool first = !s->begun;
    push(s, part);
    int r = first ? begin(j, s, part, err) : 0;
    if (r == 0 && s->read)
        r = check_length(s, last, err);
    s->complete = last;
    if (r < 0)
        return unfit(j, number, err);
    if (j->whole) {
        r = append(j, s, part, err);
        drop_all(s);
    }
    return r;
}

// Beginning

// Returns true if the document needs the segments of each source in their order.
static bool in_order(const struct join *j)
{
    size_t *at = xcalloc(j->n, sizeof *at);
    bool good = true;
    for (size_t i = 0; i < j->doc.n_parts && good; i++) {
        const struct scatter_part *p = &j->doc.parts[i];
        if (p->source == SCATTER_OWN)
            continue;
        good = p->offset >= at[p->source];
        at[p->source] = p->offset + p->len;
    }
    free(at);
    return good;
}

static int make_whole(struct join *j, struct err *err)
{
    int r = 0;
    j->whole = true;
    for (uint32_t i = 0; i < j->n && r == 0; i++) {
        struct source *s = &j->sources[i];
        for (size_t k = s->next; k < s->n && s->begun && r == 0; k++)
            r = append(j, s, &s->parts[k], err);
        if (s->begun) // else its result is with its rank
            drop_all(s);
    }
    return r;
}

static int send(struct call *c, const struct record_part *part, struct err *err)
{
    bool first = c->join->part == 0 && c->join->part_sent == 0;
    return answer_part(c, RECORD_GROUP, part, first, err);
}

static bool all_begun(const struct call *c)
{
    const struct join *j = c->join;
    uint32_t n = j->begun;
    for (uint32_t i = 0; i < j->n; i++) // a rank whose result is whole has answered
        n += !j->sources[i].begun && !answer_rank(c, i)->member;
    return n == j->n;
}

// Joins all sources, once each of them has begun or is whole. It uses nothing but the join. Long work (fiber.h).
static int put_together(struct join *j, struct err *err)
{
    struct batch_result *results = arena_array(&j->memory, j->n, sizeof *results);
    int r = 0;
    for (uint32_t i = 0; i < j->n && r == 0; i++) {
        struct source *s = &j->sources[i];
        if (!s->read && read_source(j, s, err) < 0)
            r = unfit(j, s->rank, err);
        results[i] = (struct batch_result){&s->batch, s->rank, s->padding};
    }
    if (r == 0 && batch_join(results, j->n, j->each, &j->memory, &j->doc, err) < 0)
        r = err_wrap(err, "%s() of %s ran", j->method, j->group);
    if (r < 0)
        return r;
    j->in_order = in_order(j);
    j->own = blob_new(j->doc.own.len, j->quota);
    if (!j->own)
        return no_room(j, err);
    fiber_copy(j->own->data, j->doc.own.data, j->doc.own.len);
    return 0;
}

static void on_work(struct job *job)
{
    struct join *j = CONTAINER_OF(job, struct join, job);
    if (!j->unwanted)
        (void)put_together(j, &j->err);
}

static void on_done(struct job *job)
{
    struct join *j = CONTAINER_OF(job, struct join, job);
    j->over = true;
    if (j->unwanted)
        free_all(j);
}

// Takes the results that arrived in one piece. Returns how many bytes must be read.
static size_t take_whole(const struct call *c, struct join *j)
{
    const struct dispatch_plan *d = c->plan;
    size_t len = 0, head = 0;
    struct err ignored = ERR_INIT;
    for (uint32_t i = 0; i < j->n; i++) {
        struct source *s = &j->sources[i];
        s->rank = d->d.keep[i];
        s->padding = j->each ? batch_padding(d->rows, d->each, d->d.piece_of[s->rank]) : 0;
        if (!s->begun) {
            const struct record_part part = answer_result(answer_rank(c, i));
            if (part.len)
                push(s, &part);
            len += part.len;
        } else if (safetensors_head_len(s->parts[s->next].blob->data + s->parts[s->next].offset, &head, &ignored) ==
                   0) {
            len += head;
        }
    }
    return len;
}

// Decides how the sources continue: one after the other, or put together.
static int finish_start(struct join *j, struct err *err)
{
    int r = charge(j, err);
    for (uint32_t i = 0; i < j->n && r == 0; i++) {
        const struct source *s = &j->sources[i];
        if (s->begun && check_length(s, s->complete, err) < 0)
            r = unfit(j, s->rank, err);
    }
    return r < 0 || (j->in_order && j->begun) ? r : make_whole(j, err);
}

static int start(const struct call *c, struct join *j, struct err *err)
{
    j->started = true;
    j->working = take_whole(c, j) > JOB_STEP;
    if (j->working) {
        j->job = (struct job){.work = on_work, .done = on_done};
        job_begin(&j->job, c->tenant);
        return 0;
    }
    int r = put_together(j, err);
    return r < 0 ? r : finish_start(j, err);
}

// Sending

// Sends the next segment, or as much of it as has arrived. 0 = more must arrive first.
static int send_some(struct call *c, struct err *err)
{
    struct join *j = c->join;
    const struct scatter_part *p = &j->doc.parts[j->part];
    struct record_part out = {j->own, p->offset, p->len};
    if (p->source != SCATTER_OWN) {
        struct source *s = &j->sources[p->source];
        size_t at = p->offset + j->part_sent;
        drop(s, MIN(at - s->at, s->waits)); // rows that are not part of the answer
        if (s->at < at || !s->waits)
            return 0;
        out = s->parts[s->next];
        out.len = MIN(out.len, p->len - j->part_sent);
        // A source that arrived in one piece is sent by reference.
        out.len = MIN(out.len, c->router->config.pause_mark + 1);
    }
    int r = send(c, &out, err);
    if (r < 0)
        return r;
    j->part_sent += out.len;
    if (p->source != SCATTER_OWN)
        drop(&j->sources[p->source], out.len);
    if (j->part_sent == p->len) {
        j->part++;
        j->part_sent = 0;
    }
    return 1;
}

static int pump(struct call *c, struct err *err)
{
    struct join *j = c->join;
    int r = 1;
    while (r > 0 && j->part < j->doc.n_parts && answer_waits(c) <= c->router->config.pause_mark)
        r = send_some(c, err);
    for (uint32_t i = 0; i < j->n && j->part == j->doc.n_parts; i++)
        drop_all(&j->sources[i]); // padding
    return MIN(r, 0);
}

static int send_whole(struct call *c, struct err *err)
{
    struct join *j = c->join;
    struct record_part *sources = arena_array(&j->memory, j->n, sizeof *sources);
    for (uint32_t i = 0; i < j->n; i++) {
        const struct source *s = &j->sources[i];
        if (s->all)
            sources[i] = (struct record_part){s->all, 0, s->all->len};
        else if (s->next < s->n)
            sources[i] = s->parts[s->next];
    }
    int r = answer_send_scatter(c, &j->doc, j->own, sources, err);
    return r < 0 ? r : JOIN_ANSWERED;
}

static size_t all_waits(const struct join *j)
{
    size_t n = 0;
    for (uint32_t i = 0; i < j->n; i++)
        n += j->sources[i].waits + (j->sources[i].all ? j->sources[i].all->len : 0);
    return n;
}

int join_advance(struct call *c, struct err *err)
{
    struct join *j = c->join;
    int r = j->started || !all_begun(c) ? 0 : start(c, j, err);
    if (r == 0 && j->working && j->over) {
        j->working = false;
        *err = j->err;
        r = err->code ? err->code : finish_start(j, err);
    }
    if (r == 0 && j->started && !j->working && !j->whole)
        r = pump(c, err);
    if (r < 0)
        return r;
    answer_parks(c, all_waits(j));
    if (c->left || !j->started || j->working)
        return JOIN_GOES_ON;
    if (j->whole)
        return send_whole(c, err);
    return j->part < j->doc.n_parts ? JOIN_GOES_ON : JOIN_STREAMED;
}

size_t join_waits(const struct call *c, uint32_t rank)
{
    const struct source *s = source_of(c, rank);
    return s ? s->waits : 0;
}

void join_free(struct call *c)
{
    struct join *j = TAKE_PTR(c->join);
    if (!j)
        return;
    j->unwanted = true;
    if (!j->working || j->over)
        free_all(j);
}
