// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/errand.h"

#include <stdlib.h>
#include <string.h>

enum errand_kind errand_kind_of(const struct head *head)
{
    if (head_method_is(head, "group.create"))
        return ERRAND_CREATE;
    return head_method_is(head, "group.delete") ? ERRAND_DELETE : ERRAND_NONE;
}

int errand_begin(struct session *s, enum errand_kind kind, uint32_t id, const char *args, size_t len, struct err *err)
{
    size_t n = 0;
    LIST_FOREACH(l, &s->errands)
        n++;
    if (n >= ERRANDS_MAX)
        return err_set(err, ERR_THROTTLED, "%zu groups are being created or deleted for this connection already", n);
    if (len > ERRAND_ARGS_MAX)
        return err_set(err, ERR_LIMIT, "a WorkerGroup of %zu bytes: at most %d", len, ERRAND_ARGS_MAX);
    struct errand *e = xcalloc(1, sizeof *e);
    *e = (struct errand){.kind = kind, .session = s, .caller_id = id, .args = memcpy(xcalloc(1, len + 1), args, len)};
    list_append(&s->router->errands, &e->link);
    list_append(&s->errands, &e->of_session);
    return 0;
}

bool errand_pending(const struct session *s, uint32_t id)
{
    LIST_FOREACH(l, &s->errands)
        if (CONTAINER_OF(l, struct errand, of_session)->caller_id == id)
            return true;
    return false;
}

static void errand_free(struct errand *e)
{
    list_remove(&e->link);
    list_remove(&e->of_session);
    free(e->args);
    free(e);
}

void errands_abandon(struct session *s)
{
    LIST_FOREACH(l, &s->errands) {
        struct errand *e = CONTAINER_OF(l, struct errand, of_session);
        list_remove(&e->of_session);
        e->session = NULL;
        if (!e->begun)
            errand_free(e);
    }
}

struct errand *router_errand(struct router *r)
{
    struct list *l = list_pop(&r->errands);
    if (!l)
        return NULL;
    struct errand *e = CONTAINER_OF(l, struct errand, link);
    e->begun = true;
    list_append(&r->begun, &e->link);
    return e;
}

void router_drop_errands(struct router *r)
{
    LIST_FOREACH(l, &r->begun)
        errand_free(CONTAINER_OF(l, struct errand, link));
}

static void answer(struct errand *e, uint8_t type, const char *body, size_t len)
{
    if (e->session)
        session_copy(e->session, &(struct record_header){.type = type, .call = e->caller_id, .rank = RECORD_GROUP},
                     body, len);
    errand_free(e);
}

void errand_answer(struct errand *e, const char *json, size_t len)
{
    answer(e, RECORD_RESULT, json, len);
}

void errand_fail(struct errand *e, const struct err *err)
{
    struct failure f;
    struct buf body = BUF_INIT(SIZE_MAX / 2);
    failure_from(&f, err);
    failure_encode(&f, &body);
    answer(e, RECORD_ERROR, body.data, body.len);
    buf_done(&body);
}
