// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/connection.h"

#include "common/base/log.h"
#include "common/ws/memory.h"
#include "operator/gateway/group_changes.h"
#include "operator/proxy/tenant.h"

#include <stdlib.h>
#include <string.h>

enum {
    WAITING_MAX = 256 << 10,
    RECORD_BYTES = 1024, // a record or a text takes at least as long as reading so many bytes
};

struct input { // part of a message: all of a text, or some bytes of a binary one
    bool text, end;
    const char *data;
    size_t len;
    struct blob *blob;     // contains a long text; NULL = the text is in the input buffer of the server
    struct unread *unread; // what kept it; NULL = it has just arrived
};

struct unread {
    struct quota *payer; // NULL = nobody pays, or the blob has its own quota
    struct list link;
    struct input input;
    char copy[];
};

// While the gateway takes calls, one may be on its way.
void connection_go_if_done(struct connection *c)
{
    if (c->gateway->router.stopping && c->role && list_empty(&c->unread) && c->role->idle && c->role->idle(c))
        connection_goodbye(c);
}

static void on_changed(struct peer_owner *o, struct peer *p)
{
    struct connection *c = CONTAINER_OF(o, struct connection, owner);
    if (c->role && c->role->changed)
        c->role->changed(c, p);
    connection_go_if_done(c);
}

struct connection *connection_new(struct gateway *g, struct ws_session *ws, const struct target *target,
                                  size_t max_hello, connection_hello *on_hello)
{
    struct connection *c = xcalloc(1, sizeof *c);
    *c = (struct connection){
        .owner = {.changed = on_changed, .admission = &c->admission, .ns = c->target.ns, .lifetime = c},
        .gateway = g,
        .ws = ws,
        .on_hello = on_hello,
        .target = *target};
    list_init(&c->unread);
    list_init(&c->behind);
    list_append(&g->connections, &c->link);
    record_reader_init(&c->reader,
                       &(struct record_reader_config){.whole = true, .max_body = max_hello, .quota = g->unadmitted});
    ws_session_charge(ws, g->unadmitted);
    return c;
}

// Sending

int connection_send(struct connection *c, uint8_t type, const char *body, size_t len, struct err *err)
{
    const struct record_header h = {.type = type, .rank = RECORD_GROUP};
    return ws_session_record_copy(c->ws, &h, body, len, err);
}

// Shared memory

static void send_shared(void *ctx, enum record_type type, const char *body, size_t len)
{
    struct connection *c = ctx;
    struct err ignored = ERR_INIT; // a peer whose queue is full is about to end
    connection_send(c, (uint8_t)type, body, len, &ignored);
}

static struct area *open_area(void *ctx, int fd, size_t size, struct err *err)
{
    struct connection *c = ctx;
    return memory_open(ws_session_peer(c->ws), fd, size, false, err);
}

void connection_share(struct connection *c, struct json_writer *w)
{
    struct gateway *g = c->gateway;
    if (!g->probe || !ws_session_peer(c->ws))
        return;
    share_init(&c->share, &(struct share_config){.send = send_shared, .open = open_area, .ctx = c});
    ws_session_records(c->ws)->share = &c->share;
    c->shares = true;
    writer_i64(w, "memory", memory_area(g->probe)->fd);
}

static void stop_sharing(struct connection *c)
{
    if (!c->shares)
        return;
    c->shares = false;
    ws_session_records(c->ws)->share = NULL;
    share_done(&c->share);
}

static int take_shared(struct connection *c, const struct record *rec, struct err *err)
{
    int r = share_record(&c->share, rec->h.type, rec->body, rec->len, err);
    if (r == 0 && rec->h.type == RECORD_MEMORY)
        c->share.lends = true; // the peer has tried the memory
    return MIN(r, 0);
}

bool connection_in_body(const struct connection *c)
{
    return record_reader_unfinished(&c->reader) != UINT64_MAX;
}

static void unread_free(struct connection *c, struct unread *h)
{
    c->waiting_bytes -= h->input.len;
    if (h->payer)
        quota_refund(h->payer, h->input.len);
    quota_unref(h->payer);
    blob_unref(h->input.blob);
    free(h);
}

static void drop_unread(struct connection *c)
{
    for (struct list *l; (l = list_pop(&c->unread));)
        unread_free(c, CONTAINER_OF(l, struct unread, link));
    list_remove(&c->behind);
}

static void detach(struct connection *c)
{
    struct gateway *g = c->gateway;
    const struct peer_role *role = TAKE_PTR(c->role);
    if (c->state == CONNECTION_ENDED)
        return;
    c->state = CONNECTION_ENDED;
    record_reader_done(&c->reader); // before its quota is freed
    if (role)
        role->end(c);
    stop_sharing(c);
    group_changes_ended(g, &c->owner, c->done);
    admission_done(&c->admission);
    admission_done(&c->review);
    alarm_clear(&c->alarm, &g->alarms);
    drop_unread(c);
}

// When a group is restarted or deleted, all its ranks go. The group's own Event reports that once.
static void log_end(struct connection *c, const struct err *err)
{
    bool usual = c->state == CONNECTION_SERVED && (err->code == ERR_CONFLICT || err->code == ERR_GONE);
    if (usual)
        log_debug("a peer was refused", "who", c->name, "peer", c->address, "error", err->msg, NULL);
    else if (err->code)
        gateway_log_refusal(c->gateway, c->name, c->address, err);
}

void connection_close(struct connection *c, unsigned code, const struct err *err)
{
    _cleanup_(buf_done) struct buf body = BUF_INIT(8192);
    struct err ignored = ERR_INIT;
    if (c->state == CONNECTION_ENDED)
        return;
    log_end(c, err);
    c->gateway->counters.refused += c->state != CONNECTION_SERVED;
    if (err->code && c->state != CONNECTION_UPGRADED && !c->json) {
        gateway_error_body(err, &body);
        connection_send(c, RECORD_ERROR, buf_str(&body), body.len, &ignored);
    }
    detach(c);
    ws_session_close(c->ws, code, err->msg);
}

void connection_refuse(struct connection *c, const struct err *err)
{
    connection_close(c, gateway_close_code(err->code), err);
}

void connection_expired(struct connection *c)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_UNAUTHORIZED, "the token of this connection has expired; connect with a new one");
    connection_close(c, GATEWAY_CLOSE_EXPIRED, &err);
}

static void tell_goodbye(struct connection *c)
{
    static const char body[] = "{\"reason\":\"this operator is stopping\"}";
    struct err ignored = ERR_INIT;
    if (c->state == CONNECTION_SERVED && !c->json && !c->told) // not before the WELCOME
        c->told = connection_send(c, RECORD_GOODBYE, body, sizeof body - 1, &ignored) == 0;
}

void connection_drain(struct connection *c)
{
    if (!c->role)
        connection_goodbye(c);
    else if (c->role->idle)
        tell_goodbye(c);
}

void connection_goodbye(struct connection *c)
{
    if (c->state == CONNECTION_ENDED)
        return;
    tell_goodbye(c);
    detach(c);
    ws_session_close(c->ws, FRAME_CLOSE_GOING_AWAY, "this operator is stopping");
}

// Receiving

static struct unread *unread_new(const struct input *in, struct quota *payer)
{
    struct unread *h = xmalloc(sizeof *h + (in->blob ? 0 : in->len));
    *h = (struct unread){.payer = quota_ref(payer), .input = *in};
    h->input.unread = h;
    if (in->blob) {
        blob_ref(in->blob);
        return h;
    }
    h->input.data = h->copy;
    if (in->len)
        memcpy(h->copy, in->data, in->len);
    return h;
}

// Charges input to who pays for it. A long text has its own quota. Other input is at most what one read has brought,
// because reading stops now. If the share of the namespace is full, it counts as the connection's, so that others who
// have filled the share cannot cut a client in the middle of a call.
static bool pay(const struct connection *c, const struct input *in, struct quota **ret_payer)
{
    *ret_payer = in->blob ? NULL : c->payer;
    if (!c->payer)
        return true;
    if (in->blob)
        return blob_recharge(in->blob, c->payer);
    if (quota_charge(c->payer, in->len))
        return true;
    *ret_payer = ws_session_quota(c->ws);
    return quota_charge(*ret_payer, in->len);
}

// Keeps input. If there is no room for it, it closes the connection and returns false.
static bool keep(struct connection *c, struct list *at, const struct input *in)
{
    struct quota *payer;
    if (!pay(c, in, &payer)) {
        struct err err = ERR_INIT;
        err_set(&err, ERR_THROTTLED, "%zu bytes wait to be handled, and their namespace may use no more memory",
                in->len);
        connection_close(c, FRAME_CLOSE_TRY_LATER, &err);
        return false;
    }
    list_insert_before(at, &unread_new(in, payer)->link);
    c->waiting_bytes += in->len;
    return true;
}

// Keeps the rest of kept input, before the input that came after it. The rest is paid for already, however full the
// memory is now.
static void keep_rest(struct connection *c, const struct input *left)
{
    struct unread *h = left->unread;
    size_t taken = h->input.len - left->len;
    quota_refund(h->payer, taken);
    c->waiting_bytes -= taken;
    h->input = *left;
    list_insert_before(c->unread.next, &h->link);
}

// Keeps input that was read before reading stopped. More is refused.
static void postpone(struct connection *c, const struct input *in)
{
    struct err err = ERR_INIT;
    if (in->len > WAITING_MAX - c->waiting_bytes) {
        err_set(&err, ERR_LIMIT, "the peer sent too much before the WELCOME");
        connection_close(c, FRAME_CLOSE_TRY_LATER, &err);
        return;
    }
    (void)keep(c, &c->unread, in);
}

static bool stops(const struct connection *c)
{
    return c->role && c->role->stops && c->role->stops(c);
}

// Leaves the rest of the input for a later turn.
static void fall_behind(struct connection *c)
{
    ws_session_pause(c->ws);
    connection_works_on(c);
}

void connection_works_on(struct connection *c)
{
    if (list_empty(&c->behind))
        list_append(&c->gateway->behind, &c->behind);
}

void connection_read(struct connection *c, bool read)
{
    if (read && list_empty(&c->unread))
        ws_session_resume(c->ws);
    else
        ws_session_pause(c->ws);
}

static int take_record(struct connection *c, struct record *rec, struct err *err)
{
    if (rec->h.type == RECORD_MEMORY || rec->h.type == RECORD_RETURN)
        return take_shared(c, rec, err);
    int r = c->role->record(c, rec, err);
    if (r != ROUTER_COLLECT || record_reader_collect(&c->reader, rec, c->gateway->config.max_whole, c->want))
        return r;
    rec->over = true; // there is no room
    return c->role->record(c, rec, err);
}

static void take_data(struct connection *c, const struct input *in)
{
    struct record rec;
    struct err err = ERR_INIT;
    struct input left = *in;
    int got = 0;
    while (c->state == CONNECTION_AWAITS_HELLO || c->state == CONNECTION_SERVED) {
        if (left.len && stops(c)) {
            bool paid = left.unread && left.unread->payer; // what came before the WELCOME is not
            if (paid)
                keep_rest(c, &left);
            if (paid || keep(c, c->unread.next, &left))
                fall_behind(c);
            return;
        }
        size_t before = left.len;
        got = record_reader_next(&c->reader, &left.data, &left.len, &rec, &err);
        ws_session_worked(c->ws, before - left.len, (size_t)RECORD_BYTES * record_reader_count(&c->reader));
        if (got <= 0)
            break;
        got = c->state == CONNECTION_AWAITS_HELLO ? c->on_hello(c, &rec, &err) : take_record(c, &rec, &err);
        if (got < 0)
            break;
    }
    if (c->state == CONNECTION_ENDED)
        return;
    if (c->state == CONNECTION_WAITING && left.len) {
        postpone(c, &left);
        return;
    }
    if (got == 0 && left.end)
        got = record_reader_end(&c->reader, &err);
    if (got < 0)
        connection_close(c, got == ERR_LIMIT ? FRAME_CLOSE_TOO_BIG : FRAME_CLOSE_PROTOCOL, &err);
    else if (c->role && c->role->after)
        c->role->after(c);
}

static void take(struct connection *c, const struct input *in)
{
    struct err err = ERR_INIT;
    if (in->text != c->json) {
        err_set(&err, ERR_PROTO, "a %s message: %s has others", in->text ? "text" : "binary",
                ws_session_subprotocol(c->ws));
        connection_close(c, FRAME_CLOSE_UNSUPPORTED, &err);
    } else if (in->text) {
        c->role->text(c, in->data, in->len, in->blob);
    } else {
        take_data(c, in);
    }
}

static void take_in_turn(struct connection *c, const struct input *in)
{
    if (c->state == CONNECTION_ENDED)
        return;
    if (c->state == CONNECTION_WAITING && in->text == c->json) {
        postpone(c, in);
    } else if (!list_empty(&c->unread) || (in->text && stops(c))) {
        if (keep(c, &c->unread, in))
            fall_behind(c);
    } else {
        take(c, in);
    }
}

bool connection_may_go_on(const struct connection *c)
{
    return !stops(c) || (c->role && c->role->works && c->role->works(c));
}

void connection_go_on(struct connection *c)
{
    list_remove(&c->behind);
    while (!list_empty(&c->unread) && !stops(c)) {
        struct unread *h = CONTAINER_OF(list_pop(&c->unread), struct unread, link);
        take(c, &h->input);
        if (list_empty(&h->link)) // nothing of it is left
            unread_free(c, h);
    }
    if (!list_empty(&c->unread))
        fall_behind(c);
    if (c->role && c->role->after)
        c->role->after(c);
}

void connection_data(void *gateway, struct ws_session *ws, const char *data, size_t len, bool end)
{
    (void)gateway;
    take_in_turn(ws_session_user(ws), &(struct input){.data = data, .len = len, .end = end});
}

char *connection_buffer(void *gateway, struct ws_session *ws, size_t *ret_room)
{
    struct connection *c = ws_session_user(ws);
    (void)gateway;
    return c->state == CONNECTION_SERVED && !c->json && list_empty(&c->unread)
               ? record_reader_buffer(&c->reader, ret_room)
               : NULL;
}

void connection_message(void *gateway, struct ws_session *ws, const struct ws_message *m)
{
    (void)gateway;
    ws_session_worked(ws, m->len, RECORD_BYTES);
    take_in_turn(ws_session_user(ws), &(struct input){m->text, true, m->data, m->len, m->blob});
}

void connection_drained(void *gateway, struct ws_session *ws)
{
    struct connection *c = ws_session_user(ws);
    (void)gateway;
    if (c->role && c->role->after)
        c->role->after(c);
    connection_go_if_done(c);
}

bool connection_waits(void *gateway, const struct ws_session *ws)
{
    const struct connection *c = ws_session_user(ws);
    (void)gateway;
    return connection_in_body(c) || (c->role && c->role->awaited && c->role->awaited(c));
}

void connection_wait(struct connection *c)
{
    c->state = CONNECTION_WAITING;
    alarm_clear(&c->alarm, &c->gateway->alarms);
    ws_session_pause(c->ws);
}

void connection_owner(struct connection *c, const char *ns)
{
    ws_session_owner(c->ws, ns, tenant_weight(&c->gateway->router, ns));
}

void connection_serve(struct connection *c, const struct peer_role *role, void *self, struct quota *quota)
{
    c->state = CONNECTION_SERVED;
    c->role = role;
    c->self = self;
    c->gateway->counters.opened++;
    record_reader_done(&c->reader);
    const struct gateway_config *config = &c->gateway->config;
    record_reader_init(&c->reader,
                       &(struct record_reader_config){.whole = !role->pieces,
                                                      .max_body = role->pieces ? config->max_body : config->max_whole,
                                                      .share = c->shares ? &c->share : NULL,
                                                      .quota = quota});
    ws_session_charge(c->ws, quota);
    ws_session_resume(c->ws);
    log_debug("connected", "role", role->name, "who", c->name, "peer", c->address, NULL);
    connection_go_on(c);
}

// End

void connection_closed(void *gateway, struct ws_session *ws, unsigned code, const char *reason)
{
    struct connection *c = ws_session_user(ws);
    (void)gateway;
    c->lost = code == FRAME_CLOSE_ABNORMAL;
    c->gave_up = code == FRAME_CLOSE_POLICY;
    c->cut = c->lost && *reason ? reason : NULL;
    c->done = c->state == CONNECTION_SERVED && code == FRAME_CLOSE_NORMAL;
    log_debug("disconnected", "who", c->name, "peer", c->address, "code", log_i64(code), "reason", reason, NULL);
    if (c->cut) {
        struct err err = ERR_INIT;
        err_set(&err, ERR_GONE, "its connection was cut: %s", c->cut);
        gateway_log_refusal(c->gateway, c->name, c->address, &err);
    }
    connection_free(c);
}

void connection_free(struct connection *c)
{
    detach(c);
    list_remove(&c->link);
    quota_unref(c->payer);
    free(c->token);
    arena_done(&c->memory);
    free(c);
}
