// SPDX-License-Identifier: Apache-2.0
// Random clients, workers, deaths, restarts, cancels and clocks. Whatever happens, each call is answered exactly once,
// with the right result or an error. A rank gets each call at most once, and the calls of one client in the order in
// which they were sent. In the end, nothing is charged any more.
#include "tests/unit/operator/proxy/proxy_fixture.h"

#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, CLIENTS = 3, SESSIONS = 200, CALLS = 400, PENDING = 4096, STEPS = 3500 };

enum kind { ALL_SAME, ALL_SPLIT, ZERO, ONE, KINDS };

struct sent {
    enum kind kind;
    uint32_t rank;
    bool answered, quiet;
    unsigned char ran[RANKS];
};

// A body on its way: how much of it was passed on. If the router wants it whole, all of it is passed on later.
struct partial {
    struct record r; // .body is owned; NULL = there is none
    size_t at;
    bool collected;
};

struct sim_client {
    struct client c;
    struct partial sends;
    int serial; // of its session; a rank starts to count again for each session
    uint32_t n;
    struct sent sent[CALLS + 1];
    uint64_t seq;
};

struct sim_worker {
    struct worker w;
    struct {
        uint32_t id, n;
        int serial;
    } has[PENDING]; // calls that it has not answered
    uint32_t n_has;
    struct partial says;
    struct sim *sim;
};

struct sim {
    struct proxy_fixture f;
    struct rand rnd;
    struct sim_client clients[CLIENTS];
    struct sim_worker workers[RANKS];
    uint32_t seen[SESSIONS][RANKS]; // the last call of a session that a rank got
    uint32_t attempt;
    int serial;
    unsigned results, errors, died; // counts of what the test has covered
};

static uint64_t below(struct sim *s, uint64_t n)
{
    return rand_below(&s->rnd, n);
}

static void open_client(struct sim *s, struct sim_client *c)
{
    memset(c, 0, sizeof *c);
    c->serial = s->serial++;
    assert_true(s->serial < SESSIONS);
    client_open(&s->f, &c->c, "llama");
}

// Bodies in pieces

static void partial_drop(struct partial *p)
{
    free((char *)p->r.body);
    *p = (struct partial){0};
}

static void forget_all(struct sim_worker *w)
{
    w->n_has = 0;
    partial_drop(&w->says);
}

// Does what a connection does for the router: passes a piece on, or nothing before all of it is here.
static int partial_give(struct sim *s, struct partial *p, int (*take)(void *, const struct record *, struct err *),
                        void *ctx, struct quota *q, struct err *err)
{
    struct record r = p->r;
    size_t n = below(s, 3) ? 1 + below(s, p->r.len - p->at) : p->r.len - p->at;
    r.offset = p->at;
    r.body += p->at;
    p->at += n;
    r.len = n;
    r.h.len = (uint32_t)n;
    bool last = p->at == p->r.len;
    if (p->collected && !last)
        return 0;
    if (p->collected) {
        r = p->r;
    } else if (!last) {
        r.h.flags |= RECORD_MORE;
    }
    if (below(s, 2) && (r.blob = blob_copy(r.body, r.len, q)))
        r.body = r.blob->data;
    int got = take(ctx, &r, err);
    blob_unref(r.blob);
    if (got == ROUTER_COLLECT) { // it may also get more than it wants
        p->collected = true;
        got = 0;
    }
    if (last || got < 0)
        partial_drop(p);
    return got;
}

static int give_call(void *ctx, const struct record *r, struct err *err)
{
    struct sim_client *c = ctx;
    bool last = !(r->h.flags & RECORD_MORE);
    return session_record(c->c.session, r, c->sends.collected && !last ? c->sends.r.seq : UINT64_MAX, err);
}

static void send_more(struct sim *s, struct sim_client *c)
{
    struct err err = ERR_INIT;
    if (c->sends.r.body && partial_give(s, &c->sends, give_call, c, c->c.session->quota, &err) < 0)
        fail_msg("%s", err.msg);
}

// A rank always gets [session, number], in every mode. Some arguments are so long that the ranks share them.
static void put_args(struct buf *b, const struct sim_client *c, uint32_t n, enum kind kind, size_t pad)
{
    int copies = kind == ALL_SPLIT ? RANKS : 1;
    if (kind == ALL_SPLIT)
        buf_putc(b, '[');
    for (int i = 0; i < copies; i++)
        buf_printf(b, "%s[%d,%u%*s]", i ? "," : "", c->serial, n, (int)pad, "");
    if (kind == ALL_SPLIT)
        buf_putc(b, ']');
}

static void put_head(struct sim *s, struct buf *b)
{
    char prefix[4];
    struct buf head = BUF_INIT(256);
    buf_puts(&head, "{\"method\":\"m\"");
    if (below(s, 2))
        buf_printf(&head, ",\"timeoutMs\":%u", 1 + (unsigned)below(s, 2000));
    if (below(s, 8) == 0)
        buf_puts(&head, ",\"whenNotReady\":\"Refuse\"");
    if (below(s, 16) == 0)
        buf_printf(&head, ",\"attempt\":%u", s->attempt);
    buf_putc(&head, '}');
    record_call_prefix(prefix, (uint32_t)head.len);
    buf_append(b, prefix, 4);
    buf_append(b, head.data, head.len);
    buf_done(&head);
}

static void send_call(struct sim *s, struct sim_client *c)
{
    static const uint8_t dispatch[KINDS] = {RECORD_ONE_TO_ALL, RECORD_ALL_TO_ALL, RECORD_ONE_TO_ALL, 0};
    static const uint8_t execute[KINDS] = {RECORD_ALL, RECORD_ALL, RECORD_RANK_ZERO, 0};
    if (c->n == CALLS || c->sends.r.body) // only one body is on its way at a time
        return;
    uint32_t n = ++c->n;
    struct sent *sent = &c->sent[n];
    struct buf body = BUF_INIT(1 << 20);
    *sent =
        (struct sent){.kind = (enum kind)below(s, KINDS), .rank = (uint32_t)below(s, RANKS), .quiet = below(s, 4) == 0};
    put_head(s, &body);
    put_args(&body, c, n, sent->kind, below(s, 4) ? 0 : below(s, 20000));
    struct record r = {.h = {.type = RECORD_CALL,
                             .flags = sent->quiet ? RECORD_QUIET : 0,
                             .call = n,
                             .rank = sent->kind == ONE ? sent->rank : RECORD_GROUP,
                             .dispatch = dispatch[sent->kind],
                             .execute = execute[sent->kind]},
                       .body = body.data,
                       .len = body.len,
                       .seq = ++c->seq};
    c->sends = (struct partial){.r = r};
    c->sends.r.body = buf_take(&body);
    do
        send_more(s, c);
    while (c->sends.r.body && below(s, 3));
    buf_done(&body);
}

static long number_at(const char **p, char before)
{
    char *end;
    assert_int_equal(**p, before);
    long v = strtol(*p + 1, &end, 10);
    assert_true(end > *p + 1);
    *p = end;
    return v;
}

static void take_records(struct sim *s, struct sim_worker *w)
{
    struct wire_record *r;
    while (w->w.member && (r = wire_next(&w->w.wire))) {
        struct record_call call;
        struct err err = ERR_INIT;
        if (r->h.type == RECORD_CALL) {
            assert_int_equal(record_call_decode(r->body, r->len, &call, &err), 0);
            const char *p = call.args;
            long serial = number_at(&p, '['), n = number_at(&p, ',');
            if ((uint32_t)n <= s->seen[serial][w->w.rank]) // in order, and never twice
                fail_msg("rank %u gets call %u of session %u after call %u", w->w.rank, (unsigned)n, (unsigned)serial,
                         s->seen[serial][w->w.rank]);
            s->seen[serial][w->w.rank] = (uint32_t)n;
            assert_true(w->n_has < PENDING);
            w->has[w->n_has].id = r->h.call;
            w->has[w->n_has].n = (uint32_t)n;
            w->has[w->n_has++].serial = (int)serial;
        } else {
            assert_int_equal(r->h.type, RECORD_CANCEL);
        }
        free(r);
    }
}

static int give_answer(void *ctx, const struct record *r, struct err *err)
{
    struct sim_worker *w = ctx;
    return router_member_record(&w->sim->f.router, w->w.member, r, err);
}

static void say_more(struct sim *s, struct sim_worker *w)
{
    struct err err = ERR_INIT;
    if (partial_give(s, &w->says, give_answer, w, s->f.router.bytes, &err) < 0)
        fail_msg("rank %u: %s", w->w.rank, err.msg);
}

// Answers call i, or continues the answer that is on its way.
static void answer_one(struct sim *s, struct sim_worker *w, uint32_t i)
{
    char json[64];
    bool fails = below(s, 10) == 0;
    if (!w->says.r.body) {
        int len = snprintf(json, sizeof json, fails ? "{\"code\":\"FAILED\",\"message\":\"%u/%u\"}" : "[%u,%u]",
                           w->w.rank, w->has[i].n);
        w->says.r = (struct record){
            .h = {.type = fails ? RECORD_ERROR : RECORD_RESULT, .call = w->has[i].id, .rank = w->w.rank},
            .body = xstrdup(json),
            .len = (size_t)len};
        w->has[i] = w->has[--w->n_has];
    }
    say_more(s, w);
}

static void check_result(const struct sent *sent, uint32_t n, const char *json)
{
    char want[128];
    if (sent->quiet)
        snprintf(want, sizeof want, "null");
    else if (sent->kind == ZERO || sent->kind == ONE)
        snprintf(want, sizeof want, "[%u,%u]", sent->kind == ONE ? sent->rank : 0, n);
    else
        snprintf(want, sizeof want, "[[0,%u],[1,%u],[2,%u]]", n, n, n);
    assert_string_equal(json, want);
}

static void take_answers(struct sim *s, struct sim_client *c)
{
    struct wire_record *r;
    while ((r = wire_next(&c->c.wire))) {
        assert_true(r->h.call >= 1 && r->h.call <= c->n);
        struct sent *sent = &c->sent[r->h.call];
        if (r->h.type == RECORD_HOLD || r->h.type == RECORD_GO) { // this worker ignores them
            free(r);
            continue;
        }
        assert_false(sent->answered);
        sent->answered = true;
        if (r->h.type == RECORD_RESULT) {
            check_result(sent, r->h.call, r->body);
            s->results++;
        } else {
            assert_int_equal(r->h.type, RECORD_ERROR);
            s->errors++;
        }
        free(r);
    }
    router_turn(&s->f.router);
}

static void dial(struct sim *s, struct sim_worker *w, uint32_t rank)
{
    struct err err = ERR_INIT;
    worker_hang_up(&s->f, &w->w);
    forget_all(w);
    uint32_t attempt = s->attempt - (below(s, 8) == 0 && s->attempt > 1);
    (void)worker_dial(&s->f, &w->w, rank, attempt, &err); // refused if its attempt is too old
}

// Closes the connections that the router wants to close, as their owner would.
static void close_expelled(struct sim *s)
{
    while (router_changed(&s->f.router))
        ;
    for (int i = 0; i < RANKS; i++) {
        struct sim_worker *w = &s->workers[i];
        if (w->w.member && w->w.member->peer.close_code && below(s, 2)) {
            worker_hang_up(&s->f, &w->w);
            forget_all(w);
        }
    }
}

static void act_on_worker(struct sim *s, uint64_t dice)
{
    uint32_t rank = (uint32_t)below(s, RANKS);
    struct sim_worker *w = &s->workers[rank];
    if (dice < 350) {
        take_records(s, w);
    } else if (dice < 800) {
        for (uint64_t n = 1 + below(s, 8); n-- && w->w.member && (w->n_has || w->says.r.body);)
            answer_one(s, w, (uint32_t)below(s, w->n_has));
    } else if (dice < 950) {
        if (!w->w.member || below(s, 100) == 0)
            dial(s, w, rank);
    } else if (dice < 955) {
        s->died += w->w.member != NULL;
        worker_hang_up(&s->f, &w->w);
        forget_all(w);
    } else if (dice < 958) {
        router_worker_exited(&s->f.router, FIXTURE_UID, s->attempt, rank, 1, NULL);
        fixture_group(&s->f, RANKS, ++s->attempt, NULL);
    } else if (dice < 960) {
        router_group_gone(&s->f.router, FIXTURE_UID);
        fixture_group(&s->f, RANKS, ++s->attempt, NULL);
    } else if (dice < 966) {
        fixture_group(&s->f, RANKS, s->attempt, below(s, 4) ? NULL : "Suspended");
    } else {
        fixture_pass(&s->f, (int64_t)below(s, 500));
    }
}

static void cancel(struct sim_client *c, uint32_t id)
{
    if (c->sends.r.body && c->sends.r.h.call == id) {
        c->sent[id].answered |= c->sends.collected; // the client does not know of it
        partial_drop(&c->sends);
    }
    client_cancel(&c->c, id);
}

static void act_on_client(struct sim *s, uint64_t dice)
{
    struct sim_client *c = &s->clients[below(s, CLIENTS)];
    if (dice < 70) {
        send_more(s, c);
        send_call(s, c);
    } else if (dice < 85) {
        take_answers(s, c);
    } else if (dice < 99 || s->serial > SESSIONS - 10) {
        if (c->n)
            cancel(c, 1 + (uint32_t)below(s, c->n));
    } else {
        partial_drop(&c->sends);
        client_close(&c->c);
        open_client(s, c);
    }
}

// Everybody connects again and does what there is to do.
static void settle(struct sim *s)
{
    fixture_group(&s->f, RANKS, ++s->attempt, NULL);
    for (int i = 0; i < CLIENTS; i++)
        while (s->clients[i].sends.r.body)
            send_more(s, &s->clients[i]);
    for (uint32_t i = 0; i < RANKS; i++) {
        worker_hang_up(&s->f, &s->workers[i].w);
        forget_all(&s->workers[i]);
        worker_start(&s->f, &s->workers[i].w, i, s->attempt);
    }
    do {
        fixture_pass(&s->f, 0);
        for (int i = 0; i < RANKS; i++) {
            take_records(s, &s->workers[i]);
            while (s->workers[i].n_has || s->workers[i].says.r.body)
                answer_one(s, &s->workers[i], 0);
        }
    } while (router_wait_ms(&s->f.router) == 0);
    fixture_pass(&s->f, s->f.router.config.exit_wait_ms);
    for (int i = 0; i < CLIENTS; i++) {
        struct sim_client *c = &s->clients[i];
        take_answers(s, c);
        for (uint32_t n = 1; n <= c->n; n++)
            if (!c->sent[n].answered)
                fail_msg("call %u of client %d is not answered", n, i);
        assert_int_equal(c->c.session->calls.used, 0);
    }
}

static void simulate(uint64_t seed, unsigned *results, unsigned *errors, unsigned *died)
{
    struct sim *s = xcalloc(1, sizeof *s);
    rand_seed(&s->rnd, seed);
    struct router_config limits = fixture_limits;
    limits.turn_work = seed % 2 ? 1 + below(s, 5) : 0;
    fixture_init(&s->f, &limits);
    s->attempt = 1;
    fixture_group(&s->f, RANKS, 1, NULL);
    for (int i = 0; i < RANKS; i++)
        s->workers[i].sim = s;
    for (int i = 0; i < CLIENTS; i++)
        open_client(s, &s->clients[i]);
    for (int step = 0; step < STEPS; step++) {
        if (below(s, 4))
            act_on_worker(s, below(s, 1000));
        else
            act_on_client(s, below(s, 100));
        close_expelled(s);
    }
    settle(s);
    for (int i = 0; i < CLIENTS; i++)
        client_close(&s->clients[i].c);
    for (int i = 0; i < RANKS; i++)
        worker_hang_up(&s->f, &s->workers[i].w);
    fixture_done(&s->f);
    *results += s->results;
    *errors += s->errors;
    *died += s->died;
    free(s);
}

static void every_call_is_answered_exactly_once(void **state)
{
    (void)state;
    unsigned results = 0, errors = 0, died = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        print_message("seed %u\r", (unsigned)seed);
        simulate(seed, &results, &errors, &died);
    }
    print_message("%u results, %u errors, %u deaths\n", results, errors, died);
    assert_true(results > 10000 && errors > 2000 && died > 100); // otherwise the test covers too little
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_answered_exactly_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
