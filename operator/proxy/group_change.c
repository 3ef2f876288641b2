// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/group_change.h"

#include "common/base/mem.h"
#include "operator/proxy/tenant.h"

#include <stdlib.h>
#include <string.h>

static const char *const methods[] = {
    [GROUP_CHANGE_CREATE] = "group.create",   [GROUP_CHANGE_RENEW] = "group.renew",
    [GROUP_CHANGE_DELETE] = "group.delete",   [GROUP_CHANGE_RESTART] = "group.restart",
    [GROUP_CHANGE_BUNDLES] = "group.bundles", [GROUP_CHANGE_CAPACITY] = "group.capacity",
};

enum group_change_kind group_change_kind_of(const char *method, size_t len)
{
    for (size_t i = GROUP_CHANGE_NONE + 1; i < ARRAY_LEN(methods); i++)
        if (strlen(methods[i]) == len && memcmp(methods[i], method, len) == 0)
            return (enum group_change_kind)i;
    return GROUP_CHANGE_NONE;
}

static int check(const struct session *s, enum group_change_kind kind, size_t len, struct err *err)
{
    size_t n = 0;
    LIST_FOREACH(l, &s->group_changes)
        n++;
    if (n >= GROUP_CHANGES_MAX)
        return err_set(err, ERR_THROTTLED,
                       "this connection has %zu requests about groups without an answer; wait for some of them", n);
    if (kind == GROUP_CHANGE_RENEW && len > GROUP_RENEWAL_ARGS_MAX)
        return err_set(err, ERR_LIMIT, "the arguments of group.renew have %zu bytes; at most %d", len,
                       GROUP_RENEWAL_ARGS_MAX);
    if (len > GROUP_CHANGE_ARGS_MAX)
        return err_set(err, ERR_LIMIT, "a manifest of %zu bytes: at most %d", len, GROUP_CHANGE_ARGS_MAX);
    return 0;
}

// Returns the quota that pays. NULL = none has room.
static struct quota *charge(const struct session *s, enum group_change_kind kind, size_t cost)
{
    if (quota_charge(s->quota, cost))
        return s->quota;
    return kind == GROUP_CHANGE_RENEW && quota_charge(s->router->bytes, cost) ? s->router->bytes : NULL;
}

int group_change_begin(struct session *s, enum group_change_kind kind, uint32_t id, const char *args, size_t len,
                       struct err *err)
{
    size_t cost = sizeof(struct group_change) + 2 * len; // the router's owner keeps a copy, too
    if (check(s, kind, len, err) < 0)
        return err->code;
    struct quota *payer = charge(s, kind, cost);
    if (!payer) {
        tenant_explain(s->tenant, s->quota, err);
        return err->code;
    }
    struct group_change *e = xcalloc(1, sizeof *e);
    *e = (struct group_change){.kind = kind,
                               .session = s,
                               .client_id = id,
                               .args = memcpy(xcalloc(1, len + 1), args, len),
                               .quota = quota_ref(payer),
                               .cost = cost};
    list_append(&s->router->group_changes, &e->link);
    list_append(&s->group_changes, &e->of_session);
    return 0;
}

bool group_change_pending(const struct session *s, uint32_t id)
{
    LIST_FOREACH(l, &s->group_changes)
        if (CONTAINER_OF(l, struct group_change, of_session)->client_id == id)
            return true;
    return false;
}

static void group_change_free(struct group_change *e)
{
    list_remove(&e->link);
    list_remove(&e->of_session);
    quota_refund(e->quota, e->cost);
    quota_unref(e->quota);
    free(e->args);
    free(e);
}

void group_changes_abandon(struct session *s)
{
    LIST_FOREACH(l, &s->group_changes) {
        struct group_change *e = CONTAINER_OF(l, struct group_change, of_session);
        list_remove(&e->of_session);
        e->session = NULL;
        if (!e->begun)
            group_change_free(e);
    }
}

struct group_change *router_group_change(struct router *r)
{
    struct list *l = list_pop(&r->group_changes);
    if (!l)
        return NULL;
    struct group_change *e = CONTAINER_OF(l, struct group_change, link);
    e->begun = true;
    list_append(&r->begun, &e->link);
    return e;
}

void router_drop_group_changes(struct router *r)
{
    LIST_FOREACH(l, &r->begun)
        group_change_free(CONTAINER_OF(l, struct group_change, link));
}

static void answer(struct group_change *e, uint8_t type, const char *body, size_t len)
{
    if (e->session)
        session_copy(e->session, &(struct record_header){.type = type, .call = e->client_id, .rank = RECORD_GROUP},
                     body, len);
    group_change_free(e);
}

void group_change_answer(struct group_change *e, const char *json, size_t len)
{
    answer(e, RECORD_RESULT, json, len);
}

void group_change_fail(struct group_change *e, const struct err *err)
{
    struct call_failure f;
    _cleanup_(buf_done) struct buf body = BUF_INIT(SIZE_MAX / 2);
    call_failure_from(&f, err);
    call_failure_encode(&f, "", false, false, &body);
    answer(e, RECORD_ERROR, body.data, body.len);
}
