// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/post.h"

#include "common/base/str.h"
#include "operator/gateway/admission.h"
#include "operator/gateway/browser.h"
#include "operator/gateway/target.h"
#include "operator/proxy/jsonrpc.h"
#include "operator/proxy/tenant.h"

#include <stdlib.h>
#include <string.h>

struct post {
    struct peer_owner owner; // must be first
    struct list link;
    struct list behind; // in gateway.behind_posts while it waits for another turn
    struct gateway *gateway;
    struct ws_request *request;
    struct target target;
    struct admission admission;
    char trace[TRACEPARENT_LEN + 1]; // from its header
    struct tenant *tenant;           // pays for it; NULL until it was admitted
    bool entered;                    // it counts as a connection of the tenant
    bool whole;                      // its body is complete
    bool called;                     // jsonrpc has it
    struct jsonrpc jsonrpc;
};

static void leave(struct post *p)
{
    if (p->entered)
        tenant_leave(p->tenant);
    p->entered = false;
}

static void post_free(struct post *p)
{
    admission_done(&p->admission);
    if (p->called)
        jsonrpc_done(&p->jsonrpc);
    leave(p);
    if (p->tenant)
        tenant_unref(p->tenant);
    list_remove(&p->link);
    list_remove(&p->behind);
    p->gateway->counters.posts--;
    free(p);
}

static void respond_text(struct ws_request *r, int status, const char *text, const char *headers)
{
    _cleanup_(free_p) char *line = xasprintf("%s\n", text);
    ws_request_respond(r, status, "text/plain; charset=utf-8", headers, line, strlen(line));
}

// `again`: nothing of the request has run, so the client may send it again.
static void refuse(struct gateway *g, struct ws_request *r, const struct err *err, bool again)
{
    int status = gateway_refused(g, r, err);
    bool later = again && (status == 429 || status == 503);
    respond_text(r, status, err->msg,
                 status == 401 ? "WWW-Authenticate: Bearer\r\n"
                 : later       ? "Retry-After: 1\r\n"
                               : NULL);
}

static void refuse_and_free(struct post *p, const struct err *err)
{
    refuse(p->gateway, p->request, err, !p->called);
    post_free(p);
}

// The client has gone, so nobody wants the answer.
static void on_gone(void *ctx, struct ws_request *r)
{
    (void)r;
    post_free(ctx);
}

static void on_taken(void *ctx)
{
    struct tenant *t = ctx;
    tenant_leave(t);
    tenant_unref(t);
}

// The request counts as a connection of its namespace until the client has taken the answer.
static void answered(struct post *p)
{
    tenant_enter(tenant_ref(p->tenant));
    ws_request_on_end(p->request, on_taken, p->tenant);
    post_free(p);
}

// The answer is one text. A request without an id gets no answer.
static void answer(struct post *p)
{
    struct parts text;
    if (jsonrpc_next(&p->jsonrpc, &text))
        ws_request_respond_parts(p->request, 200, "application/json", &text);
    else if (jsonrpc_idle(&p->jsonrpc))
        ws_request_respond(p->request, 202, "application/json", NULL, "", 0);
    else {
        if (jsonrpc_busy(&p->jsonrpc) && list_empty(&p->behind))
            list_append(&p->gateway->behind_posts, &p->behind);
        return;
    }
    answered(p);
}

static void on_changed(struct peer_owner *o, struct peer *peer)
{
    struct post *p = CONTAINER_OF(o, struct post, owner);
    if (!peer->close_code) {
        answer(p);
        return;
    }
    struct err err = ERR_INIT;
    err_set(&err, ERR_UNAVAILABLE, "%s", peer->close_reason);
    refuse_and_free(p, &err);
}

static void call(struct post *p)
{
    struct gateway *g = p->gateway;
    size_t len;
    const char *body = ws_request_body(p->request, &len);
    leave(p); // its session counts instead
    p->called = true;
    jsonrpc_init(&p->jsonrpc, &g->router, p->target.ns, p->target.group, g->config.max_queue, &p->owner);
    p->jsonrpc.session->code = p->admission.code;
    memcpy(p->jsonrpc.trace, p->trace, sizeof p->trace);
    tenant_spend(p->tenant, 1 + len / TENANT_UNIT_BYTES);
    jsonrpc_input(&p->jsonrpc, body, len);
    ws_request_drop_body(p->request); // the router has a copy of what it needs
    answer(p);
}

// The request is admitted and complete.
static void call_in_turn(struct post *p)
{
    struct gateway *g = p->gateway;
    if (list_empty(&g->behind_posts) && tenant_may_go_on(&g->router, p->target.ns))
        call(p);
    else
        list_append(&g->behind_posts, &p->behind);
}

// Requests of one namespace keep their order.
void posts_go_on(struct gateway *g)
{
    struct list now = LIST_INIT(now);
    list_splice(&now, &g->behind_posts);
    for (struct list *l; (l = list_pop(&now));) {
        struct post *p = CONTAINER_OF(l, struct post, behind);
        if (p->called)
            answer(p);
        else if (tenant_may_go_on(&g->router, p->target.ns))
            call(p);
        else
            list_append(&g->behind_posts, &p->behind);
    }
}

// From now on its namespace pays, and it counts as a connection of that namespace.
static int charge(struct post *p, struct err *err)
{
    struct router *router = &p->gateway->router;
    if (tenant_check_sessions(router, p->target.ns, err) < 0)
        return err->code;
    p->tenant = tenant_get(router, p->target.ns);
    if (!ws_request_charge(p->request, p->tenant->quota)) {
        tenant_explain(p->tenant, p->tenant->quota, err);
        return err->code;
    }
    p->entered = true;
    tenant_enter(p->tenant);
    ws_request_for(p->request, p->target.ns, p->tenant->weight);
    return 0;
}

static void on_admission(struct admission *a)
{
    struct post *p = CONTAINER_OF(a, struct post, admission);
    if (a->err.code || charge(p, &a->err) < 0) {
        refuse_and_free(p, &a->err);
    } else if (p->whole) {
        call_in_turn(p);
    } else {
        ws_request_read(p->request);
    }
}

static int check(const struct gateway *g, const struct target *t, struct ws_request *r, const char *token,
                 struct err *err)
{
    if (admission_check(g, r, err) < 0)
        return err->code;
    if (t->kind != TARGET_CALLS)
        return err_set(err, ERR_NOT_FOUND, "this path is for websockets of agents and workers");
    if (!str_eq(ws_request_method(r), "POST")) {
        err->http_status = 426;
        return err_set(err, ERR_INVALID, "POST a JSON-RPC request, or upgrade to a websocket");
    }
    if (!token && !admission_is_open(g, r))
        return admission_no_token(err);
    return browser_check_type(ws_request_header(r, "content-type"), err);
}

static void respond_ca(struct gateway *g, struct ws_request *r)
{
    if (g->ca_pem)
        ws_request_respond(r, 200, "application/x-pem-file", NULL, g->ca_pem, strlen(g->ca_pem));
    else
        respond_text(r, 404, "this operator has no CA", NULL);
}

static struct post *post_new(struct gateway *g, struct ws_request *r, const struct target *t)
{
    struct post *p = xcalloc(1, sizeof *p);
    p->owner = (struct peer_owner){.changed = on_changed, .admission = &p->admission, .ns = p->target.ns};
    p->gateway = g;
    p->request = r;
    p->target = *t;
    list_init(&p->behind);
    list_append(&g->posts, &p->link);
    g->counters.posts++;
    ws_request_on_gone(r, on_gone, p);
    return p;
}

// Checks the right to call before the body is read. Otherwise the body would take room from clients that may call.
int post_head(void *gateway, struct ws_request *r)
{
    struct gateway *g = gateway;
    struct target target;
    struct err err = ERR_INIT;
    const char *token = admission_token(g, r);
    if (target_parse(ws_request_path(r), &target, &err) < 0 || check(g, &target, r, token, &err) < 0) {
        refuse(g, r, &err, true);
        return 0;
    }
    struct post *p = post_new(g, r, &target);
    const char *trace = ws_request_header(r, "traceparent");
    traceparent_copy(p->trace, trace, trace ? strlen(trace) : 0);
    admission_ask(&p->admission, g, token, target.ns, on_admission);
    if (!p->admission.settled)
        return 1;
    on_admission(&p->admission);
    return 0;
}

static void get(struct gateway *g, struct ws_request *r)
{
    struct target target;
    struct err err = ERR_INIT;
    int code = target_parse(ws_request_path(r), &target, &err);
    if (code == 0 && target.kind == TARGET_CA) {
        respond_ca(g, r);
        return;
    }
    if (code == 0)
        check(g, &target, r, NULL, &err);
    refuse(g, r, &err, true);
}

void post_whole(void *gateway, struct ws_request *r)
{
    struct post *p = ws_request_owner(r);
    if (!p) {
        get(gateway, r);
        return;
    }
    p->whole = true;
    if (p->admission.settled)
        call_in_turn(p);
}

void posts_stop(struct gateway *g, bool all)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_UNAVAILABLE, "this operator is stopping; if the call had begun it may have run");
    LIST_FOREACH(l, &g->posts) {
        struct post *p = CONTAINER_OF(l, struct post, link);
        if (all || !p->called)
            refuse_and_free(p, &err);
    }
}

void posts_free(struct gateway *g)
{
    LIST_FOREACH(l, &g->posts)
        post_free(CONTAINER_OF(l, struct post, link));
}
