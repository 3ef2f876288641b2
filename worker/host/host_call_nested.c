// SPDX-License-Identifier: Apache-2.0
#include "worker/host/host_call_nested.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/wire/batch.h"
#include "common/wire/via.h"
#include "worker/host/method_executor.h"

#include <inttypes.h>
#include <poll.h>
#include <sys/eventfd.h>

static cadre_result failed(struct cadre_call *c, const cadre_client_error *e)
{
    if (cadre_call_canceled(c))
        return CADRE_CANCELED;
    return call_fail(c, CADRE_ERROR, "%s() called, and got %s: %s", c->method, e->name, e->message);
}

static cadre_result connect_line(struct cadre_call *c, const char *method)
{
    struct nested *n = &c->nested;
    cadre_client_error error = {0};
    if (!n->client)
        return call_fail(c, CADRE_ERROR, "%s() cannot call %s(): this worker has no proxy", c->method, method);
    n->line = n->line ? n->line : nested_client_line(n->client, &error);
    if (!n->line)
        return failed(c, &error);
    eventfd_t old;
    (void)eventfd_read(n->line->wake, &old); // clear the wake-up of an earlier call
    atomic_store(&n->wake, n->line->wake + 1);
    return CADRE_OK;
}

int call_via(const struct cadre_call *c, struct buf *out, struct err *err)
{
    struct via_entry here = {.role = c->nested.role, .method = c->method};
    nested_client_where(c->nested.client, &here.ns, &here.group, &here.rank);
    return via_add(c->nested.via, c->nested.via_len, &here, out, err);
}

// The call may take no longer than the client of this method waits. It has a limit even if that client waits without
// one.
static bool set_timeout(const struct cadre_call *c, int64_t wanted, cadre_client_request *q)
{
    int64_t left = c->nested.deadline - clock_mono_ms(&clock_system);
    q->timeout_ms = wanted;
    if (c->nested.deadline && (!wanted || left < wanted))
        q->timeout_ms = left;
    else if (!wanted)
        q->timeout_ms = NESTED_WAIT_MS;
    return !c->nested.deadline || left > 0;
}

static cadre_result fill(struct cadre_call *c, const cadre_request *r, cadre_client_request *q)
{
    cadre_client_request_init(q, r->method);
    q->group = r->group;
    q->role = r->role;
    if (r->args && batch_is_safetensors(r->args, r->args_len)) {
        q->batch = r->args;
        q->batch_len = r->args_len;
    } else if (r->args) {
        q->args = (cadre_client_json){r->args, r->args_len};
    }
    q->rank = r->rank;
    q->dispatch = (int)r->dispatch;
    q->execute = (int)r->execute;
    q->keep = 1;
    return set_timeout(c, r->timeout_ms, q) ? CADRE_OK : CADRE_CANCELED;
}

static void add_open(struct nested *n, uint64_t id)
{
    if (!n->open)
        n->open = xcalloc(NESTED_OPEN_MAX, sizeof *n->open);
    n->open[n->n_open++] = id;
}

static bool take_open(struct nested *n, uint64_t id)
{
    for (size_t i = 0; i < n->n_open; i++)
        if (n->open[i] == id) {
            n->open[i] = n->open[--n->n_open];
            return true;
        }
    return false;
}

CADRE_EXPORT cadre_result cadre_group_start(cadre_call *c, const cadre_request *request, uint64_t *ret_id)
{
    cadre_client_request q;
    cadre_client_error error = {0};
    struct err err = ERR_INIT;
    cadre_request r = {0};
    memcpy(&r, request, MIN(request->size, sizeof r));
    const char *method = r.method ? r.method : "?";
    cadre_result result = connect_line(c, method);
    if (result == CADRE_OK)
        result = fill(c, &r, &q);
    if (result != CADRE_OK)
        return result;
    if (c->nested.n_open == NESTED_OPEN_MAX)
        return call_fail(c, CADRE_ERROR, "%s() has %d open calls; get their results first", c->method, NESTED_OPEN_MAX);
    _cleanup_(buf_done) struct buf via = BUF_INIT(64 << 10);
    if (call_via(c, &via, &err) < 0) {
        result = call_fail(c, CADRE_ERROR, "%s() cannot call %s(): %s", c->method, method, err.msg);
    } else {
        q.via = buf_str(&via);
        q.traceparent = c->trace[0] ? c->trace : NULL;
        if (cadre_client_start(c->nested.line->client, &q, ret_id, &error) == CADRE_CLIENT_OK)
            add_open(&c->nested, *ret_id);
        else
            result = failed(c, &error);
    }
    return result;
}

static bool is_answered(cadre_client *client, uint64_t id)
{
    size_t ready = 0;
    return cadre_client_wait_for(client, &id, 1, 1, 0, &ready, NULL) != CADRE_CLIENT_OK || ready;
}

CADRE_EXPORT cadre_result cadre_group_get(cadre_call *c, uint64_t id, const char **ret, size_t *ret_len)
{
    struct nested *n = &c->nested;
    cadre_client_error error = {0};
    cadre_client_json json;
    eventfd_t woken;
    if (!take_open(n, id))
        return call_fail(c, CADRE_INVALID_ARGUMENT, "%s(): call %" PRIu64 " is none that waits to be got", c->method,
                         id);
    struct pollfd fds[] = {{.fd = cadre_client_fd(n->line->client), .events = POLLIN},
                           {.fd = n->line->wake, .events = POLLIN}};
    while (!is_answered(n->line->client, id)) {
        if (cadre_call_canceled(c)) {
            add_open(n, id); // nested_end() cancels it
            return CADRE_CANCELED;
        }
        method_executor_waits();
        poll(fds, ARRAY_LEN(fds), cadre_client_timeout_ms(n->line->client));
        (void)eventfd_read(n->line->wake, &woken);
    }
    if (cadre_client_get(n->line->client, id, &json, &error) != CADRE_CLIENT_OK)
        return failed(c, &error);
    *ret = json.text;
    *ret_len = json.len;
    return CADRE_OK;
}

CADRE_EXPORT cadre_result cadre_group_call(cadre_call *c, const cadre_request *request, const char **ret,
                                           size_t *ret_len)
{
    uint64_t id;
    cadre_result r = cadre_group_start(c, request, &id);
    return r == CADRE_OK ? cadre_group_get(c, id, ret, ret_len) : r;
}
