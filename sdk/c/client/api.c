// SPDX-License-Identifier: Apache-2.0
// The public functions: they check the user's input and pass it to client.c.
#include "common/base/json_scan.h"
#include "common/base/mem.h"
#include "common/wire/batch.h"
#include "common/wire/call_head.h"
#include "common/wire/mode.h"
#include "common/wire/traceparent.h"
#include "sdk/c/client/callback_thread.h"
#include "sdk/c/client/client.h"
#include "sdk/c/client/client_threads.h"

enum { LOCKED_COPY_MAX = 256 << 10 }; // bytes that are copied with the lock of the client

const char *cadre_client_version(void)
{
    return CADRE_VERSION;
}

cadre_client_code cadre_client_open(const cadre_client_options *options, cadre_client **ret, cadre_client_error *error)
{
    struct settings s;
    struct err err = ERR_INIT;
    if (settings_init(&s, options, &err) < 0)
        return fault_return(error, &err);
    *ret = client_new(&s);
    if ((*ret)->settings.threaded) {
        (*ret)->callbacks = callback_thread_new(&(*ret)->settings);
        client_threads_start(*ret);
    }
    return CADRE_CLIENT_OK;
}

static bool in_callback(struct cadre_client *c)
{
    client_enter(c);
    bool turning = c->turning;
    client_leave(c);
    return turning;
}

void cadre_client_close(cadre_client *c)
{
    if (!c || in_callback(c))
        return;
    cadre_client_shut(c);
    struct client_threads *t = c->threads;
    client_free(c);
    client_threads_free(t);
}

void cadre_client_shut(cadre_client *c)
{
    if (!c || !c->threads || in_callback(c))
        return;
    client_enter(c);
    if (!c->closing) {
        c->closing = true;
        client_threads_stop(c->threads);
        client_end(c);
        client_tell(c);
    }
    struct callback_thread *callbacks = TAKE_PTR(c->callbacks);
    client_leave(c);
    callback_thread_free(callbacks);
}

// Names are inside JSON, without escapes.
static int copy_name(char *out, size_t size, const char *what, const char *name, struct err *err)
{
    size_t len = name ? strnlen(name, size) : 0;
    bool good = len >= 1 && len < size;
    for (size_t i = 0; good && i < len; i++)
        good = name[i] > ' ' && name[i] < 0x7f && name[i] != '"' && name[i] != '\\';
    if (!good)
        return err_set(err, ERR_INVALID, "the %s of the call must be a name of 1 to %zu plain characters", what,
                       size - 1);
    memcpy(out, name, len + 1);
    return 0;
}

static int add_json(struct buf *out, const char *member, const char *text, const char *method, struct err *err)
{
    if (!text)
        return 0;
    if (!json_scan_one(text, strlen(text)))
        return err_set(err, ERR_INVALID, "%s(): `%s` is not JSON", method, member);
    buf_printf(out, ",\"%s\":", member);
    if (buf_puts(out, text) < 0)
        return err_set(err, ERR_LIMIT, "%s(): `split` and `collect` of more than %d bytes", method, CLIENT_MORE_MAX);
    return 0;
}

static int fill_more(struct pending *p, const cadre_client_request *r, struct err *err)
{
    _cleanup_(buf_done) struct buf more = BUF_INIT(CLIENT_MORE_MAX);
    char role[PENDING_METHOD_MAX + 1];
    if (!r->split && !r->collect && !r->pad && !r->positional && !r->role && !r->via && !r->traceparent &&
        !r->by_reference && !r->pin)
        return 0;
    if (r->role && copy_name(role, sizeof role, "role", r->role, err) < 0)
        return err->code;
    if (r->role)
        buf_printf(&more, ",\"role\":\"%s\"", role);
    if (r->traceparent && !traceparent_valid(r->traceparent, strlen(r->traceparent)))
        return err_set(err, ERR_INVALID, "%s(): traceparent is not one of W3C Trace Context", r->method);
    if (r->traceparent)
        buf_printf(&more, ",\"traceparent\":\"%.*s\"", (int)TRACEPARENT_LEN, r->traceparent);
    buf_puts(&more, r->pad ? ",\"pad\":true" : "");
    buf_puts(&more, r->positional ? ",\"positional\":true" : "");
    buf_puts(&more, r->by_reference ? ",\"keep\":true" : "");
    buf_puts(&more, r->pin ? ",\"pin\":true" : "");
    if (add_json(&more, "via", r->via, r->method, err) < 0 || add_json(&more, "split", r->split, r->method, err) < 0 ||
        add_json(&more, "collect", r->collect, r->method, err) < 0)
        return err->code;
    p->more = buf_take(&more);
    return 0;
}

static int fill(const struct cadre_client *c, struct pending *p, const cadre_client_request *r, struct err *err)
{
    if (copy_name(p->method, sizeof p->method, "method", r->method, err) < 0 ||
        (r->group && copy_name(p->group, sizeof p->group, "group", r->group, err) < 0))
        return err->code;
    if (!r->group && !c->settings.group)
        return err_set(err, ERR_INVALID, "%s(): no group: set it in the call or in the client", r->method);
    if (r->rank < -1 || r->rank >= RECORD_GROUP)
        return err_set(err, ERR_INVALID, "%s(): there is no rank %lld", r->method, (long long)r->rank);
    if (r->timeout_ms < 0 || r->timeout_ms > CALL_HEAD_TIMEOUT_MAX_MS || r->attempt < 0)
        return err_set(err, ERR_INVALID, "%s(): a negative attempt or timeout, or a timeout over 7 days; 0 is none",
                       r->method);
    bool modes =
        (!r->dispatch || mode_of((unsigned)r->dispatch)) && (!r->execute || mode_execute_of((unsigned)r->execute));
    if (!modes || (r->rank >= 0 && (r->dispatch || r->execute)))
        return err_set(err, ERR_INVALID, "%s(): %s", r->method,
                       modes ? "a call to one rank has no dispatch or execute mode" : "there is no such mode");
    p->rank = r->rank < 0 ? RECORD_GROUP : (uint32_t)r->rank;
    p->dispatch = (uint8_t)(r->per_rank ? CADRE_CLIENT_ALL_TO_ALL : r->dispatch);
    p->execute = (uint8_t)r->execute;
    p->refuse = r->refuse_when_not_ready;
    p->timeout_ms = r->timeout_ms;
    p->attempt = r->attempt;
    p->created_ms = r->timeout_ms ? clock_mono_ms(&clock_system) : 0;
    p->done = r->done;
    p->ctx = r->ctx;
    p->keep = r->keep;
    p->urgent = r->urgent;
    p->lends = r->lend;
    p->quiet = r->no_result || (!r->done && !r->keep);
    return retry_new(r, &p->retry, err) < 0 ? err->code : fill_more(p, r, err);
}

// While long arguments are copied, other threads use the client, and it answers the pings of the proxy.
static int copy_arguments(struct cadre_client *c, struct pending *p, const struct arguments *args, struct err *err)
{
    char *out;
    if (client_reserve(c, p, args, &out, err) < 0)
        return err->code;
    if (!out)
        return 0;
    bool others = args->len > LOCKED_COPY_MAX && !c->turning;
    if (others)
        client_leave(c);
    arguments_write(args, out);
    if (others)
        client_enter(c);
    return c->closing ? err_set(err, ERR_CANCELED, "%s(): the client has been closed", p->method) : 0;
}

static uint64_t start(struct cadre_client *c, const cadre_client_request *r, struct err *err)
{
    struct arguments args;
    size_t max = c->uplinks.now->max_body && c->uplinks.now->max_body < c->settings.max_body ? c->uplinks.now->max_body
                                                                                             : c->settings.max_body;
    if (!client_may_start(c, r->urgent, err))
        return 0;
    struct pending *p = pendings_take(&c->calls);
    uint64_t id = p->id;
    if (fill(c, p, r, err) == 0 && arguments_of(r, max, &args, err) == 0 && copy_arguments(c, p, &args, err) == 0 &&
        client_submit(c, p, &args, err) == 0) {
        c->n_promised += p->keep;
        c->n_urgent += p->urgent;
        return id;
    }
    client_abandon(c, p);
    return 0;
}

cadre_client_code cadre_client_start(cadre_client *c, const cadre_client_request *request, uint64_t *ret_id,
                                     cadre_client_error *error)
{
    cadre_client_request r;
    struct err err = ERR_INIT;
    uint64_t id = 0;
    client_enter(c);
    if (settings_copy_sized(&r, sizeof r, request, "cadre_client_request", &err) == 0)
        id = start(c, &r, &err);
    if (id && (!r.lazy || client_is_turned(c)))
        client_stir(c);
    client_leave(c);
    if (!id)
        return fault_return(error, &err);
    if (ret_id)
        *ret_id = id;
    return CADRE_CLIENT_OK;
}

cadre_client_code cadre_client_cancel(cadre_client *c, uint64_t id)
{
    struct err err = ERR_INIT;
    client_enter(c);
    client_cancel(c, id, &err);
    client_stir(c);
    client_leave(c);
    return (cadre_client_code)-err.code;
}

// Blocking

struct outcome {
    struct cadre_client *c;
    bool over;
    cadre_client_code code;
    cadre_client_error *error; // may be NULL
    cadre_client_json result;
};

static void on_done(void *ctx, const cadre_client_answer *a)
{
    struct outcome *o = ctx;
    struct buf *out = &o->c->result;
    o->over = true;
    if (!a->error && o->c->answered_in) { // nothing is copied
        o->c->returned = blob_ref(o->c->answered_in);
        o->result = a->result;
        return;
    }
    if (!a->error) {
        buf_reset(out);
        buf_append(out, a->result.text, a->result.len); // its cap limits results, too
        o->result = (cadre_client_json){buf_str(out), out->len};
        return;
    }
    o->code = a->error->code;
    if (o->error)
        *o->error = *a->error;
}

static bool lies_in(const struct blob *b, const void *data)
{
    return (uintptr_t)data - (uintptr_t)b->data < b->len;
}

cadre_client_code cadre_client_call(cadre_client *c, const cadre_client_request *request, cadre_client_json *ret,
                                    cadre_client_error *error)
{
    cadre_client_request r;
    struct err err = ERR_INIT;
    struct outcome o = {.c = c, .error = error};
    if (c->turning)
        err_set(&err, ERR_INVALID, "a callback cannot wait for a call; cadre_client_start() is for it");
    else if (settings_copy_sized(&r, sizeof r, request, "cadre_client_request", &err) == 0) {
        r.keep = 0;
        r.lend = 1; // the caller waits, so nobody changes the arguments
        r.done = on_done;
        r.ctx = &o;
        start(c, &r, &err);
    }
    if (err.code)
        return fault_return(error, &err);
    struct blob *last = TAKE_PTR(c->returned); // it may hold the arguments of this call
    bool passed = last && (lies_in(last, r.args.text) || lies_in(last, r.batch));
    if (!passed)
        blob_unref(TAKE_PTR(last));
    while (!o.over)
        client_turn(c, INT64_MAX);
    blob_unref(last);
    if (o.code == CADRE_CLIENT_OK && ret)
        *ret = o.result;
    return o.code;
}

// Calls a method that the proxy or the workers serve themselves.
static cadre_client_code call_own(cadre_client *c, const char *method, const char *group, int64_t rank,
                                  cadre_client_json args, int64_t timeout_ms, cadre_client_json *ret,
                                  cadre_client_error *error)
{
    cadre_client_request r;
    cadre_client_request_init(&r, method);
    r.group = group;
    r.rank = rank;
    r.args = args;
    r.timeout_ms = timeout_ms;
    return cadre_client_call(c, &r, ret, error);
}

cadre_client_code cadre_client_info(cadre_client *c, const char *group, int64_t timeout_ms, cadre_client_json *ret,
                                    cadre_client_error *error)
{
    return call_own(c, "group.info", group, -1, (cadre_client_json){NULL, 0}, timeout_ms, ret, error);
}

cadre_client_code cadre_client_kill(cadre_client *c, const char *group, int64_t rank, int64_t timeout_ms,
                                    cadre_client_error *error)
{
    return call_own(c, "group.kill", group, rank, (cadre_client_json){NULL, 0}, timeout_ms, NULL, error);
}

size_t cadre_client_wait(cadre_client *c, int64_t timeout_ms)
{
    int64_t end = client_end_of(timeout_ms);
    client_enter(c);
    uint64_t before = c->answered;
    while (c->answered == before && !c->turning && c->calls.used > c->n_kept && client_pass(c, end))
        ;
    size_t n = c->turning ? 0 : (size_t)(c->answered - before);
    client_leave_waiting(c);
    return n;
}

// The user's event loop

int cadre_client_fd(const cadre_client *c)
{
    return loop_fd(c->loop);
}

int cadre_client_timeout_ms(cadre_client *c)
{
    return c->turning ? 0 : loop_timeout_ms(c->loop);
}

size_t cadre_client_process(cadre_client *c)
{
    return client_turn(c, 0);
}

int cadre_client_connected(const cadre_client *c)
{
    client_enter((cadre_client *)c);
    bool up = c->uplinks.now->state == UPLINK_UP;
    client_leave((cadre_client *)c);
    return up;
}

size_t cadre_client_pending(const cadre_client *c)
{
    client_enter((cadre_client *)c);
    size_t n = client_open_calls(c);
    client_leave((cadre_client *)c);
    return n;
}

const char *cadre_client_dispatch_name(int dispatch)
{
    return mode_dispatch_of((unsigned)dispatch);
}

const char *cadre_client_dispatch_row(int dispatch)
{
    const struct dispatch_mode *m = mode_of((unsigned)dispatch);
    return m ? m->row : NULL;
}

const char *cadre_client_execute_name(int execute)
{
    return mode_execute_of((unsigned)execute);
}

// References

cadre_client_code cadre_client_object_put(cadre_client *c, const cadre_client_request *to, cadre_client_json value,
                                          cadre_client_json *ret, cadre_client_error *error)
{
    cadre_client_request r;
    struct err err = ERR_INIT;
    cadre_client_request_init(&r, NULL);
    if (to && settings_copy_sized(&r, sizeof r, to, "cadre_client_request", &err) < 0)
        return fault_return(error, &err);
    r.size = sizeof r;
    r.method = "object.put";
    r.args = (cadre_client_json){NULL, 0};
    r.batch = r.per_rank = NULL;
    r.batch_len = r.n_per_rank = 0;
    r.role = NULL; // all roles share one store
    r.no_result = r.by_reference = 0;
    if (value.text && batch_is_safetensors(value.text, value.len)) {
        r.batch = value.text;
        r.batch_len = value.len;
    } else {
        r.args = value;
    }
    return cadre_client_call(c, &r, ret, error);
}

cadre_client_code cadre_client_object_get(cadre_client *c, cadre_client_json reference, int64_t timeout_ms,
                                          cadre_client_json *ret, cadre_client_error *error)
{
    return call_own(c, "object.get", NULL, -1, reference, timeout_ms, ret, error);
}

cadre_client_code cadre_client_object_pin(cadre_client *c, cadre_client_json reference, int64_t timeout_ms,
                                          cadre_client_error *error)
{
    return call_own(c, "object.pin", NULL, -1, reference, timeout_ms, NULL, error);
}

cadre_client_code cadre_client_object_free(cadre_client *c, cadre_client_json reference, int64_t timeout_ms,
                                           cadre_client_error *error)
{
    return call_own(c, "object.free", NULL, -1, reference, timeout_ms, NULL, error);
}
