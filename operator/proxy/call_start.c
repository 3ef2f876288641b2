// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/call_start.h"

#include "common/wire/batch.h"
#include "common/wire/mode.h"
#include "operator/proxy/delivery.h"
#include "operator/proxy/dispatch_plan.h"
#include "operator/proxy/split_stream.h"

// JSON up to some length may contain references, which must be looked up. JSON in shared memory can be read where it
// is, and is passed on if it contains none. A client that changes it meanwhile changes its own arguments.
static bool needs_no_look(const struct router *r, const struct call_body *first, const struct record_call *parts,
                          size_t *want)
{
    size_t most = r->config.whole_json, len = parts->args_len;
    const char *args = len ? parts->args : first->next;
    size_t seen = len ? len : first->next_len;
    if (!most || len > most || batch_is_safetensors(args, seen))
        return true;
    if (first->next_last && !ref_mentioned_in(parts->args, len, first->next, first->next_len))
        return true;
    if (!seen) // anything more will do: bytes in shared memory then go to a rank in one segment
        *want = first->len;
    else
        *want = 4 + parts->head_len + (len < SAFETENSORS_PREFIX ? SAFETENSORS_PREFIX : most + 1);
    return false;
}

// Splits the batch while it arrives, if that is possible. `c` is NULL if there is no call yet. False: more of the batch
// must arrive first.
static bool plan_rows(struct session *s, struct call *c, const struct request *q, const struct record_call *parts,
                      struct call_start *ret, size_t *want)
{
    struct err *err = &ret->err;
    size_t head;
    if (!split_stream_ready(parts, &head, want)) {
        *want += *want ? 4 + parts->head_len : 0;
        return false;
    }
    int got = c ? delivery_take_head(c, ret->plan, &ret->split, err) : 0;
    ret->prepare = got == 0 && delivery_head_is_long(head);
    if (got == 0 && !ret->prepare) {
        got = split_stream_make(q->method, ret->plan->d.n_pieces, q->pad, parts, s->quota, &ret->split, err);
        if (ret->split && split_stream_aim(ret->split, q->method, ret->plan, err) < 0)
            got = err->code;
    }
    ret->verdict = got < 0 ? got : ret->verdict;
    *want = 0;
    return got < 0 || ret->split || ret->prepare;
}

static bool plan(struct call_start *ret, struct session *s, const struct group *g, struct call *c,
                 const struct request *q, const struct call_body *first, size_t *want)
{
    struct record_call parts;
    struct err *err = &ret->err;
    *want = 0;
    if (record_call_decode(first->data, first->len, &parts, err) < 0 ||
        dispatch_plan_make(q, g, &parts, s->quota, &ret->plan, err) < 0) {
        ret->verdict = err->code;
        return true;
    }
    if (dispatch_plan_is_whole(q, ret->plan))
        return needs_no_look(s->router, first, &parts, want);
    return ret->plan && ret->plan->d.form == MODE_ROWS && plan_rows(s, c, q, &parts, ret, want);
}

void call_start_forget(struct call_start *start)
{
    dispatch_plan_free(TAKE_PTR(start->plan));
    split_stream_free(TAKE_PTR(start->split));
}

bool call_start_plan(struct call_start *ret, struct session *s, const struct group *g, struct call *c,
                     const struct request *q, const struct call_body *first, size_t *want)
{
    bool enough = plan(ret, s, g, c, q, first, want);
    if (!enough || ret->verdict < 0 || ret->prepare)
        call_start_forget(ret);
    return enough;
}

bool call_start_decide(struct call_start *ret, struct session *s, const struct group *g, struct request *q,
                       const struct call_body *first, size_t *want)
{
    *ret = (struct call_start){.err = ERR_INIT};
    *want = 0;
    ret->verdict = request_resolve(q, g, s, false, &ret->err);
    if (ret->verdict < 0 || ret->verdict == VERDICT_WAIT) // nobody knows before the group is ready
        return true;
    return call_start_plan(ret, s, g, NULL, q, first, want);
}
