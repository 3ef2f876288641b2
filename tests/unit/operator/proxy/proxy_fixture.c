// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/proxy/proxy_fixture.h"

#include "common/base/json.h"
#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct router_config fixture_limits = {
    .total_bytes = 64 << 20,
    .session_bytes = 16 << 20,
    .high_mark = 4 << 20,
    .low_mark = 1 << 20,
    .pause_mark = 2 << 20,
    .resume_mark = 1 << 20,
    .total_calls = 1200,
    .session_calls = 100,
    .member_calls = 500,
    .ready_wait_ms = 60000,
    .task_wait_ms = 3600 * 1000,
    .exit_wait_ms = 200,
};

bool fixture_cuts;
static struct rand cuts;

void fixture_init(struct proxy_fixture *f, const struct router_config *limits)
{
    clock_fake_init(&f->clock, 1000, 0);
    struct router_config config = limits ? *limits : fixture_limits;
    config.clock = &f->clock.clock;
    router_init(&f->router, &config);
}

// Everything that was charged must have been refunded.
void fixture_done(struct proxy_fixture *f)
{
    while (router_changed(&f->router))
        ;
    router_tick(&f->router);
    fixture_pass(f, f->router.config.exit_wait_ms);
    while (router_wait_ms(&f->router) == 0)
        fixture_pass(f, 0);
    assert_int_equal(f->router.n_calls, 0);
    assert_int_equal(quota_used(f->router.bytes), 0);
    assert_int_equal(router_wait_ms(&f->router), -1);
    router_done(&f->router);
}

void fixture_group(struct proxy_fixture *f, uint32_t world, uint32_t attempt, const char *refusal)
{
    struct group_facts facts = {.uid = FIXTURE_UID,
                                .ns = "ml",
                                .name = "llama",
                                .world = world,
                                .attempt = attempt,
                                .oldest = attempt,
                                .refusal = refusal};
    router_group_set(&f->router, &facts);
    router_turn(&f->router);
}

void fixture_meshes(struct proxy_fixture *f, uint32_t world, const struct mesh *meshes, size_t n)
{
    struct group_facts facts = {.uid = FIXTURE_UID,
                                .ns = "ml",
                                .name = "llama",
                                .world = world,
                                .attempt = 1,
                                .oldest = 1,
                                .meshes = meshes,
                                .n_meshes = n};
    router_group_set(&f->router, &facts);
    router_turn(&f->router);
}

void fixture_pass(struct proxy_fixture *f, int64_t ms)
{
    clock_fake_advance(&f->clock, ms);
    router_tick(&f->router);
    router_turn(&f->router);
}

unsigned fixture_turns(struct proxy_fixture *f)
{
    unsigned n = 0;
    for (; router_wait_ms(&f->router) == 0; n++) {
        router_tick(&f->router);
        router_turn(&f->router);
    }
    return n;
}

static void wire_init(struct wire *w)
{
    record_writer_init(&w->out, 8 << 20);
    record_reader_init(&w->reader, &(struct record_reader_config){.whole = true});
    list_init(&w->records);
}

static void wire_done(struct wire *w)
{
    for (struct list *l; (l = list_pop(&w->records));)
        free(CONTAINER_OF(l, struct wire_record, link));
    record_reader_done(&w->reader);
    record_writer_done(&w->out);
}

// Small bodies overtake long ones. The calls begin in the order of `seq`.
static void keep_in_order(struct wire *w, struct wire_record *r)
{
    struct list *at = &w->records;
    while (at->prev != &w->records && CONTAINER_OF(at->prev, struct wire_record, link)->seq > r->seq)
        at = at->prev;
    list_insert_before(at, &r->link);
}

void wire_pass(struct wire *w)
{
    char *message = xmalloc(RECORD_MESSAGE);
    struct record r;
    struct err err = ERR_INIT;
    for (size_t n; (n = record_writer_fill(&w->out, message, RECORD_MESSAGE)) > 0;) {
        const char *p = message;
        int got;
        while ((got = record_reader_next(&w->reader, &p, &n, &r, &err)) > 0) {
            struct wire_record *kept = xmalloc(sizeof *kept + r.len + 1);
            *kept = (struct wire_record){.h = r.h, .seq = r.seq, .len = r.len};
            if (r.len)
                memcpy(kept->body, r.body, r.len);
            kept->body[r.len] = 0;
            keep_in_order(w, kept);
        }
        assert_int_equal(got, 0);
    }
    free(message);
}

// Does what a worker does: an ORDERED call waits for the calls that began before it.
struct wire_record *wire_next(struct wire *w)
{
    wire_pass(w);
    uint64_t unfinished = record_reader_unfinished(&w->reader);
    LIST_FOREACH(l, &w->records) {
        struct wire_record *r = CONTAINER_OF(l, struct wire_record, link);
        if ((r->h.flags & RECORD_ORDERED) && r->seq >= unfinished)
            continue;
        list_remove(l);
        return r;
    }
    return NULL;
}

int worker_dial_as(struct proxy_fixture *f, struct worker *w, uint32_t rank, uint32_t attempt, const char *hello,
                   struct err *err)
{
    char pod[32], node[32];
    snprintf(pod, sizeof pod, "llama-%u-0", rank);
    snprintf(node, sizeof node, "n%u", rank);
    *w = (struct worker){.rank = rank, .attempt = attempt};
    wire_init(&w->wire);
    int r = router_join(&f->router,
                        &(struct member_identity){FIXTURE_UID, attempt, rank, pod, node, NULL, "10.0.0.7", "secret"},
                        hello, strlen(hello), &w->wire.out, w, &w->member, err);
    if (r < 0)
        wire_done(&w->wire);
    router_turn(&f->router);
    return r;
}

int worker_dial(struct proxy_fixture *f, struct worker *w, uint32_t rank, uint32_t attempt, struct err *err)
{
    static const char hello[] = "{\"role\":\"worker\",\"objectPort\":4711,\"methods\":["
                                "{\"name\":\"first\",\"dispatch\":\"ALL_TO_ALL\",\"execute\":\"RANK_ZERO\"},"
                                "{\"name\":\"add\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"},"
                                "{\"name\":\"each\",\"dispatch\":\"ALL_TO_ALL\",\"execute\":\"ALL\"}]}";
    return worker_dial_as(f, w, rank, attempt, hello, err);
}

void worker_start(struct proxy_fixture *f, struct worker *w, uint32_t rank, uint32_t attempt)
{
    struct err err = ERR_INIT;
    if (worker_dial(f, w, rank, attempt, &err) < 0)
        fail_msg("rank %u: %s", rank, err.msg);
}

void worker_hang_up(struct proxy_fixture *f, struct worker *w)
{
    if (!w->member)
        return;
    wire_pass(&w->wire); // the worker has read everything
    router_leave(&f->router, w->member);
    w->member = NULL;
    wire_done(&w->wire);
    router_turn(&f->router);
}

int worker_answer(struct proxy_fixture *f, struct worker *w, uint32_t id, enum record_type type, const char *json,
                  struct err *err)
{
    return worker_answer_bytes(f, w, id, type, json, strlen(json), err);
}

// Long bodies come in blobs, behind other bytes, as from a reader that had to collect them.
static void in_a_blob(struct record *r, struct quota *quota)
{
    enum { LONG = 100, FRONT = 3 };
    if (r->len < LONG)
        return;
    r->blob = blob_new(FRONT + r->len, quota);
    assert_non_null(r->blob);
    memset(r->blob->data, 'x', FRONT);
    memcpy(r->blob->data + FRONT, r->body, r->len);
    r->body = r->blob->data + FRONT;
}

typedef int (*take_fn)(void *ctx, const struct record *r, struct err *err);

// Passes records on as a connection does, with its reader in between.
static int deliver_pieces(take_fn take, void *ctx, const struct record *whole, const size_t *want, struct quota *quota,
                          struct err *err)
{
    size_t least = 0; // of the first piece
    for (size_t at = 0, n; at < whole->len; at += n) {
        struct record r = *whole;
        n = 1 + rand_below(&cuts, rand_below(&cuts, 4) ? whole->len - at : MIN(whole->len - at, (size_t)9));
        n = MIN(MAX(n, least), whole->len - at);
        r.offset = at;
        r.body += at;
        r.len = n;
        r.h.len = (uint32_t)n;
        r.h.flags |= at + n < whole->len ? RECORD_MORE : 0;
        r.blob = NULL;
        in_a_blob(&r, quota);
        int got = take(ctx, &r, err);
        blob_unref(r.blob);
        if (got < 0)
            return got;
        if (got == ROUTER_COLLECT) {
            assert_int_equal(at, 0);
            assert_true(!*want || *want > n);
            least = *want ? *want : whole->len;
            n = 0;
        } else {
            least = 0;
        }
    }
    return 0;
}

static int deliver(take_fn take, void *ctx, struct record *whole, const size_t *want, struct quota *quota,
                   struct err *err)
{
    in_a_blob(whole, quota);
    int got = fixture_cuts && whole->len ? deliver_pieces(take, ctx, whole, want, quota, err) : take(ctx, whole, err);
    blob_unref(whole->blob);
    return got;
}

struct answering {
    struct router *router;
    struct member *member;
};

static int take_answer(void *ctx, const struct record *r, struct err *err)
{
    struct answering *a = ctx;
    return router_member_record(a->router, a->member, r, err);
}

static int take_call(void *ctx, const struct record *r, struct err *err)
{
    return session_record(ctx, r, UINT64_MAX, err);
}

int worker_answer_bytes(struct proxy_fixture *f, struct worker *w, uint32_t id, enum record_type type, const char *body,
                        size_t len, struct err *err)
{
    struct record r = {
        .h = {.type = (uint8_t)type, .call = id, .rank = w->rank, .len = (uint32_t)len}, .body = body, .len = len};
    int got = deliver(take_answer, &(struct answering){&f->router, w->member}, &r, &w->member->peer.want,
                      f->router.bytes, err);
    router_turn(&f->router);
    return got;
}

uint32_t worker_takes(struct worker *w, const char *args)
{
    struct wire_record *r = wire_next(&w->wire);
    struct record_call call;
    struct err err = ERR_INIT;
    if (!r)
        return 0;
    assert_int_equal(r->h.type, RECORD_CALL);
    assert_int_equal(r->h.rank, w->rank);
    assert_int_equal(record_call_decode(r->body, r->len, &call, &err), 0);
    if (strlen(args) != call.args_len || memcmp(args, call.args, call.args_len) != 0)
        fail_msg("rank %u has arguments %.*s, not %s", w->rank, (int)call.args_len, call.args, args);
    uint32_t id = r->h.call;
    free(r);
    return id;
}

void worker_says(struct proxy_fixture *f, struct worker *w, uint32_t id, const char *json)
{
    struct err err = ERR_INIT;
    if (worker_answer(f, w, id, RECORD_RESULT, json, &err) < 0)
        fail_msg("%s", err.msg);
}

void client_open_in(struct proxy_fixture *f, struct client *c, const char *ns, const char *group)
{
    wire_init(&c->wire);
    c->session = session_new(&f->router, ns, group, &c->wire.out, c);
}

void client_open(struct proxy_fixture *f, struct client *c, const char *group)
{
    client_open_in(f, c, "ml", group);
}

void client_close(struct client *c)
{
    if (!c->session)
        return;
    struct router *router = c->session->router;
    session_end(c->session);
    c->session = NULL;
    wire_done(&c->wire);
    router_turn(router);
}

int client_send(struct client *c, const struct call_text *call, struct err *err)
{
    struct buf body = BUF_INIT(1 << 20);
    char prefix[4];
    record_call_prefix(prefix, (uint32_t)strlen(call->head));
    buf_append(&body, prefix, 4);
    buf_puts(&body, call->head);
    if (call->args)
        buf_append(&body, call->args, call->args_len ? call->args_len : strlen(call->args));
    struct record r = {.h = {.type = RECORD_CALL,
                             .flags = call->flags,
                             .call = call->id,
                             .rank = call->rank,
                             .dispatch = call->dispatch,
                             .execute = call->execute,
                             .len = (uint32_t)body.len},
                       .body = body.data,
                       .len = body.len,
                       .seq = 1};
    int got = deliver(take_call, c->session, &r, &c->session->peer.want, c->session->quota, err);
    buf_done(&body);
    router_turn(c->session->router);
    return got;
}

struct call_pieces call_pieces(uint32_t id, const char *head, const char *args, size_t args_len)
{
    size_t head_len = strlen(head);
    struct call_pieces call = {
        .id = id, .rank = RECORD_GROUP, .dispatch = RECORD_ONE_TO_ALL, .len = 4 + head_len + args_len};
    call.bytes = xmalloc(call.len);
    record_call_prefix(call.bytes, (uint32_t)head_len);
    memcpy(call.bytes + 4, head, head_len);
    memcpy(call.bytes + 4 + head_len, args, args_len);
    return call;
}

int call_pieces_send(struct client *c, struct call_pieces *call, size_t n, struct err *err)
{
    n = MIN(n, call->len - call->at);
    bool last = call->at + n == call->len;
    struct record r = {.h = {.type = RECORD_CALL,
                             .call = call->id,
                             .rank = call->rank,
                             .dispatch = call->dispatch,
                             .execute = call->execute,
                             .flags = last ? 0 : RECORD_MORE,
                             .len = (uint32_t)n},
                       .body = call->bytes + call->at,
                       .len = n,
                       .offset = call->at,
                       .seq = call->id};
    call->at += n;
    int got = session_record(c->session, &r, UINT64_MAX, err);
    router_turn(c->session->router);
    if (last)
        free(TAKE_PTR(call->bytes));
    return got;
}

int client_cancel(struct client *c, uint32_t id)
{
    struct record r = {.h = {.type = RECORD_CANCEL, .call = id, .rank = RECORD_GROUP}, .seq = 1};
    struct err err = ERR_INIT;
    int got = session_record(c->session, &r, UINT64_MAX, &err);
    router_turn(c->session->router);
    return got;
}

static void describe_error(struct client *c, struct buf *out, const struct wire_record *r)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *root;
    int64_t number;
    assert_int_equal(json_parse(r->body, r->len, NULL, &a, &root, &err), 0);
    if (json_i64(json_get(root, "rank"), &number)) {
        assert_int_equal(number, r->h.rank);
        buf_printf(out, "rank=%d ", (int)number);
        assert_non_null(json_str(json_get(root, "node"), &a));
    }
    const struct json *ran = json_get(root, "ran");
    // An error of a call that may have run says nothing.
    assert_true(!ran || (ran->type == JSON_BOOL && ran->text[0] == 'f'));
    c->unsent = ran != NULL;
    if (json_i64(json_get(root, "exitCode"), &number))
        buf_printf(out, "exit=%d ", (int)number);
    buf_printf(out, "%s %s", json_str(json_get(root, "code"), &a), json_str(json_get(root, "message"), &a));
    arena_done(&a);
}

const char *client_hears(struct client *c)
{
    static char text[128 << 10];
    struct wire_record *r = wire_next(&c->wire);
    for (; r && (r->h.type == RECORD_HOLD || r->h.type == RECORD_GO); r = wire_next(&c->wire))
        free(r); // these are not answers
    if (!r)
        return NULL;
    struct buf out = BUF_INIT(sizeof text - 1);
    buf_printf(&out, "%u %s ", r->h.call, record_type_name(r->h.type));
    if (r->h.type == RECORD_ERROR)
        describe_error(c, &out, r);
    else
        buf_printf(&out, "%s", r->body);
    snprintf(text, sizeof text, "%s", buf_str(&out));
    buf_done(&out);
    free(r);
    return text;
}
