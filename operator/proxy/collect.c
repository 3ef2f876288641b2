// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/collect.h"

#include "common/base/mem.h"
#include "common/wire/batch.h"
#include "common/wire/body_list.h"
#include "operator/proxy/answer.h"
#include "operator/proxy/dispatch_plan.h"

#include <stdlib.h>
#include <string.h>

enum {
    ONLY_MAX = 1024, // a result up to this many bytes is copied at once
    FEW = 32         // up to this many results need no memory of their own
};

static struct record_part mark_part(const struct call *c, size_t offset, size_t len)
{
    return (struct record_part){.blob = c->router->marks, .offset = offset, .len = len};
}

static int answer_json(struct call *c, const struct record_part *results, uint32_t n, struct err *err)
{
    struct record_part *parts = router_parts(c->router, 2 * (size_t)n + 1);
    size_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        parts[k++] = mark_part(c, i ? CALL_MARK_COMMA : CALL_MARK_OPEN, 1);
        parts[k++] = results[i].len ? results[i] : mark_part(c, CALL_MARK_NULL, CALL_MARK_NULL_LEN);
    }
    parts[k++] = mark_part(c, CALL_MARK_CLOSE, 1);
    return answer_send(c, parts, k, err);
}

static int answer_bodies(struct call *c, const struct record_part *results, uint32_t n, struct err *err)
{
    _cleanup_(scatter_done) struct scatter doc = SCATTER_INIT;
    body_list_begin(&doc, n);
    for (uint32_t i = 0; i < n; i++) {
        body_list_before(&doc, results[i].len);
        scatter_add(&doc, i, 0, results[i].len);
        body_list_behind(&doc, results[i].len);
    }
    struct blob *own = blob_copy(doc.own.data, doc.own.len, c->quota);
    int r = own ? answer_send_scatter(c, &doc, own, results, err) : answer_no_room(c, err);
    blob_unref(own);
    return r;
}

static int answer_list(struct call *c, const struct record_part *results, uint32_t n, struct err *err)
{
    bool json = true;
    for (uint32_t i = 0; i < n && json; i++) {
        const char *data = answer_bytes(&results[i]);
        json = !batch_is_safetensors(data, results[i].len) && !body_list_is(data, results[i].len);
    }
    return json ? answer_json(c, results, n, err) : answer_bodies(c, results, n, err);
}

bool collect_is_nothing(const struct call *c)
{
    bool nothing = true;
    for (uint32_t i = 0; i < answer_count(c) && nothing; i++) {
        const struct record_part part = answer_result(answer_rank(c, i));
        nothing = !part.len || (part.len == 4 && memcmp(answer_bytes(&part), "null", 4) == 0);
    }
    return nothing;
}

int collect(struct call *c, struct err *err)
{
    struct record_part few[FEW];
    uint32_t n = answer_count(c);
    if (c->plan && c->plan->d.join) { // there is nothing to join
        const struct record_part null = mark_part(c, CALL_MARK_NULL, CALL_MARK_NULL_LEN);
        return answer_send(c, &null, 1, err);
    }
    struct record_part *results = n <= FEW ? few : xmalloc(n * sizeof *results);
    for (uint32_t i = 0; i < n; i++)
        results[i] = answer_result(answer_rank(c, i));
    int r = answer_list(c, results, n, err);
    if (results != few)
        free(results);
    return r;
}

bool collect_only(struct call *c, const struct call_body *body)
{
    char list[ONLY_MAX + 2];
    size_t n = 0;
    if (c->n > 1 || c->plan || body->len > ONLY_MAX || batch_is_safetensors(body->data, body->len) ||
        body_list_is(body->data, body->len))
        return false;
    list[n++] = '[';
    memcpy(list + n, body->len ? body->data : "null", body->len ? body->len : 4);
    n += body->len ? body->len : 4;
    list[n++] = ']';
    c->stat.bytes_out += n;
    answer_send_copy(c, RECORD_GROUP, list, n);
    return true;
}
