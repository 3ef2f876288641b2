// SPDX-License-Identifier: Apache-2.0
// The proxy's session: two clients and three ranks around one router, and a script of what they do, an opcode and
// an operand a step. Clients and ranks send sensible records as well as any bytes; ranks answer in any order,
// twice, for others, or never; they die and come back, the group changes its attempt, is refused or deleted, time
// passes. Whatever happens: a call is answered once, and in the end nothing is charged any more.
#include "common/base/mem.h"
#include "operator/proxy/router.h"
#include "operator/proxy/session.h"
#include "tests/unit/clock_fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORLD = 3, CLIENTS = 2, CALLS = 512, PENDING = 512, COLLECT_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

// One end of a connection: what it sends goes through the reader that the proxy has for it, what it gets through `in`.
struct end {
    struct record_writer out;
    struct record_reader reader, in;
};

struct client {
    struct end end;
    struct session *session;
    uint32_t open[CALLS]; // ids of calls that are not answered
    size_t n_open;
};

struct rank {
    struct end end;
    struct member *member; // NULL = not connected
    uint32_t has[PENDING]; // calls that it has not answered ...
    size_t n_has;
    uint32_t answered; // ... and one that it has
};

struct scene {
    struct clock_fake clock;
    struct router r;
    struct client clients[CLIENTS];
    struct rank ranks[WORLD];
    uint32_t attempt;
    const uint8_t *at, *end; // the script
};

static uint8_t next(struct scene *s)
{
    return s->at < s->end ? *s->at++ : 0;
}

// A copy of just that size, so that a read behind it is seen.
static char *next_bytes(struct scene *s, size_t *ret_len)
{
    size_t want = next(s), len = MIN(want, (size_t)(s->end - s->at));
    char *copy = xmalloc(len);
    if (len)
        memcpy(copy, s->at, len);
    s->at += len;
    *ret_len = len;
    return copy;
}

static void end_init(struct end *e, struct quota *quota)
{
    record_reader_init(&e->reader, &(struct record_reader_config){.max_body = 1 << 16, .quota = quota});
    record_reader_init(&e->in, &(struct record_reader_config){.whole = true});
}

static void end_done(struct end *e)
{
    record_writer_done(&e->out);
    record_reader_done(&e->reader);
    record_reader_done(&e->in);
}

// Clients

static void client_open(struct scene *s, struct client *c)
{
    c->n_open = 0;
    record_writer_init(&c->end.out, 1 << 18);
    c->session = session_new(&s->r, "ml", next(s) & 1 ? NULL : "g", &c->end.out, c);
    end_init(&c->end, c->session->quota);
}

static void client_close(struct client *c)
{
    record_reader_done(&c->end.reader); // before its quota goes
    session_end(c->session);
    end_done(&c->end);
}

static void client_again(struct scene *s, struct client *c)
{
    client_close(c);
    client_open(s, c);
}

static void client_answered(struct client *c, uint32_t id)
{
    for (size_t i = 0; i < c->n_open; i++)
        if (c->open[i] == id) {
            c->open[i] = c->open[--c->n_open];
            return;
        }
    must(false); // nobody asked, or it was answered before
}

static void client_reads(struct scene *s, struct client *c)
{
    static char message[RECORD_MESSAGE];
    struct record rec;
    struct err err = ERR_INIT;
    for (size_t n; (n = record_writer_fill(&c->end.out, message, sizeof message)) > 0;) {
        const char *p = message;
        int got;
        while ((got = record_reader_next(&c->end.in, &p, &n, &rec, &err)) > 0) {
            if (rec.h.type == RECORD_HOLD || rec.h.type == RECORD_GO)
                continue;
            must(rec.h.type == RECORD_RESULT || rec.h.type == RECORD_ERROR);
            client_answered(c, rec.h.call);
        }
        must(got == 0);
    }
    router_turn(&s->r);
}

// As a connection does it: 0, or ROUTER_COLLECT where the body comes later, whole.
static int hand_over(int (*take)(void *to, struct record *rec, struct err *err), void *to, struct record_reader *reader,
                     struct record *rec, const size_t *want, struct err *err)
{
    int got = take(to, rec, err);
    if (got != ROUTER_COLLECT || record_reader_collect(reader, rec, COLLECT_MAX, *want))
        return got;
    rec->over = true;
    got = take(to, rec, err);
    must(got <= 0);
    return got;
}

static int take_call(void *to, struct record *rec, struct err *err)
{
    struct client *c = to;
    return session_record(c->session, rec, record_reader_unfinished(&c->end.reader), err);
}

static void client_sends(struct scene *s, struct client *c, const char *bytes, size_t len)
{
    struct record rec;
    struct err err = ERR_INIT;
    int got;
    while ((got = record_reader_next(&c->end.reader, &bytes, &len, &rec, &err)) > 0) {
        if (c->n_open == CALLS)
            client_reads(s, c);
        got = hand_over(take_call, c, &c->end.reader, &rec, &c->session->peer.want, &err);
        if (got < 0)
            break;
        // An answer is due to a call that begins, and to one that is canceled before it could.
        bool begun = rec.h.type == RECORD_CALL && (rec.offset == 0 || rec.over);
        bool dropped = rec.h.type == RECORD_CANCEL && rec.dropped;
        if (got == 0 && (begun || dropped) && c->n_open < CALLS)
            c->open[c->n_open++] = rec.h.call;
    }
    if (got < 0 || c->session->peer.close_code)
        client_again(s, c);
}

static void send_record(struct scene *s, struct client *c, const struct record_header *h, const char *body)
{
    char bytes[RECORD_HEADER_SIZE + 1024];
    record_header_encode(bytes, h);
    memcpy(bytes + RECORD_HEADER_SIZE, body, h->len);
    client_sends(s, c, bytes, RECORD_HEADER_SIZE + h->len);
}

// In two pieces. The second may never come.
static void send_pieces(struct scene *s, struct client *c, const struct record_header *h, const char *body)
{
    struct record_header first = *h, second = *h;
    uint8_t cut = next(s);
    if (cut == 0 || cut >= h->len) {
        send_record(s, c, h, body);
        return;
    }
    first.len = cut;
    first.flags |= RECORD_MORE;
    second.len -= cut;
    send_record(s, c, &first, body);
    if (next(s) % 4)
        send_record(s, c, &second, body + cut);
}

static void send_call(struct scene *s, struct client *c)
{
    static const char *const heads[] = {"{\"method\":\"m\"}",
                                        "{\"method\":\"m\",\"timeoutMs\":50}",
                                        "{\"method\":\"each\",\"group\":\"g\"}",
                                        "{\"method\":\"m\",\"whenNotReady\":\"Refuse\"}",
                                        "{\"method\":\"m\",\"attempt\":2}",
                                        "{\"method\":\"group.info\"}",
                                        "{\"method\":\"none\"}",
                                        "{\"method\":\"m\",\"group\":\"other/g\"}",
                                        "{\"method\":\"cut\",\"pad\":true}",
                                        "{\"method\":\"m\",\"split\":{\"index\":[1,0,1]}}",
                                        "{\"method\":\"task\"}",
                                        "{\"method\":\"task\",\"timeoutMs\":50}",
                                        "{\"method\":\"beside\",\"via\":[\"ml/g/0/beside\"]}",
                                        "{\"method\":\"group.kill\"}",
                                        "{\"method\":\"m\",\"role\":\"r\"}",
                                        "{\"method\":\"cut\",\"keep\":true}",
                                        "{\"method\":\"m\",\"keep\":true,\"pin\":true}",
                                        "{\"method\":\"object.put\"}",
                                        "{\"method\":\"object.get\"}",
                                        "{\"method\":\"object.free\"}"};
    static const char *const args[] = {"[1]",
                                       "[1,2,3]",
                                       "",
                                       "{\"a\":[1,2,3]}",
                                       "{\"a\":[1,2,3,4]}",
                                       "[[1],[2]]",
                                       "{\"$ref\":\"cadre:1:u:o:1.2.0000000000000007.5.j:161c3fd6\"}",
                                       "{\"$ref\":\"cadre:1:u:l:0.2.0000000000000007.5.j,1.2.0000000000000007.5.j,2.2."
                                       "0000000000000007.5.j:a8ce9b91\"}"};
    uint8_t what = next(s), modes = next(s), id = next(s);
    const char *head = heads[what % ARRAY_LEN(heads)], *arg = args[(what / 16) % ARRAY_LEN(args)];
    struct record_header h = {.type = RECORD_CALL,
                              .call = 1 + id % 64u,
                              .rank = modes & 0x80 ? id % 4u : RECORD_GROUP,
                              .flags = modes & 0x40 ? RECORD_QUIET : 0,
                              .dispatch = modes & 0x80 ? 0 : modes % 16 % RECORD_DISPATCH_COUNT,
                              .execute = modes & 0x80 ? 0 : modes / 16 % RECORD_EXECUTE_COUNT};
    char body[512];
    record_call_prefix(body, (uint32_t)strlen(head));
    int n = snprintf(body + 4, sizeof body - 4, "%s%s", head, arg);
    h.len = 4 + (uint32_t)n;
    send_pieces(s, c, &h, body);
}

static void send_cancel(struct scene *s, struct client *c)
{
    send_record(s, c, &(struct record_header){.type = RECORD_CANCEL, .call = 1 + next(s) % 64u, .rank = RECORD_GROUP},
                "");
}

static void send_bytes(struct scene *s, struct client *c)
{
    size_t len;
    char *bytes = next_bytes(s, &len);
    client_sends(s, c, bytes, len);
    free(bytes);
}

// Ranks

static void rank_dial(struct scene *s, struct rank *k)
{
    static const char hello[] = "{\"methods\":[{\"name\":\"m\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"},"
                                "{\"name\":\"each\",\"dispatch\":\"ALL_TO_ALL\",\"execute\":\"ALL\"},"
                                "{\"name\":\"task\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ANY\"},"
                                "{\"name\":\"beside\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ANY\","
                                "\"concurrency\":{\"group\":\"c\",\"limit\":2}},"
                                "{\"name\":\"cut\",\"dispatch\":\"DP_COMPUTE_PROTO\",\"execute\":\"ALL\"}]}";
    struct err err = ERR_INIT;
    uint32_t older = next(s) % 8 == 7;
    if (k->member)
        return;
    k->n_has = 0;
    record_writer_init(&k->end.out, 1 << 18);
    end_init(&k->end, s->r.bytes);
    struct member_identity id = {"u", s->attempt - older, (uint32_t)(k - s->ranks), "p", "n", NULL};
    if (router_join(&s->r, &id, hello, sizeof hello - 1, &k->end.out, k, &k->member, &err) < 0)
        end_done(&k->end);
}

static void rank_hangs_up(struct scene *s, struct rank *k)
{
    if (!k->member)
        return;
    record_reader_done(&k->end.reader);
    router_leave(&s->r, TAKE_PTR(k->member));
    end_done(&k->end);
    router_turn(&s->r);
}

static void rank_reads(struct scene *s, struct rank *k)
{
    static char message[RECORD_MESSAGE];
    struct record rec;
    struct err err = ERR_INIT;
    for (size_t n; k->member && (n = record_writer_fill(&k->end.out, message, sizeof message)) > 0;) {
        const char *p = message;
        int got;
        while ((got = record_reader_next(&k->end.in, &p, &n, &rec, &err)) > 0) {
            must(rec.h.type == RECORD_CALL || rec.h.type == RECORD_CANCEL || rec.h.type == RECORD_FREE ||
                 rec.h.type == RECORD_HOLD || rec.h.type == RECORD_GO);
            if (rec.h.type == RECORD_CALL && k->n_has < PENDING)
                k->has[k->n_has++] = rec.h.call;
        }
        must(got == 0);
    }
    router_turn(&s->r);
}

struct answering {
    struct router *router;
    struct member *member;
};

static int take_answer(void *to, struct record *rec, struct err *err)
{
    struct answering *a = to;
    return router_member_record(a->router, a->member, rec, err);
}

static void rank_sends(struct scene *s, struct rank *k, const char *bytes, size_t len)
{
    struct record rec;
    struct err err = ERR_INIT;
    int got;
    while ((got = record_reader_next(&k->end.reader, &bytes, &len, &rec, &err)) > 0)
        if ((got = hand_over(take_answer, &(struct answering){&s->r, k->member}, &k->end.reader, &rec,
                             &k->member->peer.want, &err)) < 0)
            break;
    if (got < 0 || k->member->peer.close_code)
        rank_hangs_up(s, k);
}

static void rank_says(struct scene *s, struct rank *k, uint32_t id, uint8_t how)
{
    static const char *const results[] = {"1",        "",
                                          "[1,2]",    "{\"a\":[1]}",
                                          "null",     "{\"a\":[1,2,3]}",
                                          "nonsense", "{\"id\":\"0000000000000007\",\"bytes\":5,\"kind\":\"j\"}"};
    static const char *const errors[] = {"{\"code\":\"FAILED\",\"message\":\"m\"}", "", "{\"code\":3}"};
    bool fails = how & 0x80, more = how & 0x40;
    const char *body = fails ? errors[how % ARRAY_LEN(errors)] : results[how % ARRAY_LEN(results)];
    struct record_header h = {.type = fails ? RECORD_ERROR : RECORD_RESULT,
                              .flags = more && *body ? RECORD_MORE : 0, // the rest never comes, or as any bytes
                              .call = id,
                              .rank = (uint32_t)(k - s->ranks) ^ (how & 0x20 ? 1 : 0),
                              .len = (uint32_t)strlen(body)};
    char bytes[RECORD_HEADER_SIZE + 64];
    if (!k->member || !id)
        return;
    record_header_encode(bytes, &h);
    memcpy(bytes + RECORD_HEADER_SIZE, body, h.len);
    rank_sends(s, k, bytes, RECORD_HEADER_SIZE + h.len);
}

static void rank_answers(struct scene *s, struct rank *k)
{
    size_t i = next(s);
    uint8_t how = next(s);
    if (!k->n_has)
        return;
    i %= k->n_has;
    k->answered = k->has[i];
    k->has[i] = k->has[--k->n_has];
    rank_says(s, k, k->answered, how);
}

static void rank_sends_bytes(struct scene *s, struct rank *k)
{
    size_t len;
    char *bytes = next_bytes(s, &len);
    if (k->member)
        rank_sends(s, k, bytes, len);
    free(bytes);
}

// The cluster

static void group_is(struct scene *s, const char *refusal)
{
    router_group_set(&s->r, &(struct group_facts){.uid = "u",
                                                  .ns = "ml",
                                                  .name = "g",
                                                  .world = WORLD,
                                                  .attempt = s->attempt,
                                                  .oldest = s->attempt,
                                                  .refusal = refusal});
}

static void pass(struct scene *s, int64_t ms)
{
    clock_fake_advance(&s->clock, ms);
    router_tick(&s->r);
}

// Until nothing is left for a later turn of the loop.
static void turn(struct scene *s)
{
    do
        router_turn(&s->r);
    while (router_wait_ms(&s->r) == 0);
}

static void change(struct scene *s, uint8_t how)
{
    switch (how % 5) {
    case 0:
        group_is(s, NULL);
        break;
    case 1:
        group_is(s, "Suspended");
        break;
    case 2:
        s->attempt++;
        group_is(s, NULL);
        break;
    case 3:
        router_group_gone(&s->r, "u");
        break;
    default:
        router_worker_exited(&s->r, "u", s->attempt, how / 8 % (WORLD + 1), 1, NULL);
    }
}

// As their owner does it.
static void close_expelled(struct scene *s)
{
    router_turn(&s->r);
    while (router_changed(&s->r))
        ;
    for (size_t i = 0; i < WORLD; i++)
        if (s->ranks[i].member && s->ranks[i].member->peer.close_code)
            rank_hangs_up(s, &s->ranks[i]);
    for (size_t i = 0; i < CLIENTS; i++)
        if (s->clients[i].session->peer.close_code)
            client_again(s, &s->clients[i]);
}

static void step(struct scene *s)
{
    uint8_t op = next(s), who = op / 16;
    struct client *c = &s->clients[who % CLIENTS];
    struct rank *k = &s->ranks[who % WORLD];
    switch (op % 16) {
    case 0:
    case 1:
        send_call(s, c);
        break;
    case 2:
        send_cancel(s, c);
        break;
    case 3:
        send_bytes(s, c);
        break;
    case 4:
        client_reads(s, c);
        break;
    case 5:
        client_again(s, c);
        break;
    case 6:
        rank_dial(s, k);
        break;
    case 7:
        rank_hangs_up(s, k);
        break;
    case 8:
        rank_reads(s, k);
        break;
    case 9:
    case 10:
        rank_answers(s, k);
        break;
    case 11:
        rank_says(s, k, k->answered, next(s)); // again, or what it was never asked
        break;
    case 12:
        rank_says(s, k, next(s), next(s));
        break;
    case 13:
        rank_sends_bytes(s, k);
        break;
    case 14:
        pass(s, next(s));
        break;
    default:
        change(s, next(s));
    }
    close_expelled(s);
}

static void settle(struct scene *s)
{
    for (size_t i = 0; i < WORLD; i++)
        rank_hangs_up(s, &s->ranks[i]);
    router_group_gone(&s->r, "u");
    pass(s, 2000);
    turn(s);
    close_expelled(s);
    for (size_t i = 0; i < CLIENTS; i++) {
        struct client *c = &s->clients[i];
        // Input behind a body that never ended ends with its connection.
        bool cut_off = record_reader_unfinished(&c->end.reader) != UINT64_MAX;
        client_reads(s, c);
        must(c->n_open == 0 || cut_off);
        client_close(c);
    }
    pass(s, 2000);
    turn(s);
    while (router_changed(&s->r))
        ;
    must(s->r.n_calls == 0 && quota_used(s->r.bytes) == 0);
    router_done(&s->r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scene s = {.attempt = 2, .at = data, .end = data + size};
    clock_fake_init(&s.clock, 0, 0);
    router_init(&s.r, &(struct router_config){.clock = &s.clock.clock,
                                              .total_bytes = 1 << 20,
                                              .session_bytes = 1 << 18,
                                              .high_mark = 1 << 14,
                                              .low_mark = 1 << 12,
                                              .total_calls = 48,
                                              .session_calls = 32,
                                              .member_calls = 16,
                                              .ready_wait_ms = 500,
                                              .task_wait_ms = 700,
                                              .exit_wait_ms = 100});
    group_is(&s, NULL);
    for (size_t i = 0; i < CLIENTS; i++)
        client_open(&s, &s.clients[i]);
    for (size_t i = 0; i < WORLD; i++)
        rank_dial(&s, &s.ranks[i]);
    while (s.at < s.end)
        step(&s);
    settle(&s);
    return 0;
}
