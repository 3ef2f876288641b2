// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/worker_peer.h"

#include "common/base/json_writer.h"
#include "common/base/str.h"
#include "operator/gateway/archives.h"
#include "operator/gateway/hello.h"
#include "operator/proxy/tenant.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// If a connection breaks within UNSEEN_WELCOME_MS, or the process gives up waiting, it may not have got the WELCOME.
// Its old ticket is then valid again. It may take minutes until a lost connection is noticed.
enum { UNSEEN_WELCOME_MS = 2 * 60 * 1000, PIECE_MS = 5 * 1000 };

struct shown_ticket { // the last ticket of one rank
    uint32_t attempt;
    uint64_t next; // lower serials were shown
};

struct shown_tickets {
    uint32_t n;
    struct shown_ticket *at;
};

struct worker {
    struct member *member;
    struct ticket ticket;
    int64_t since_ms;
    bool heard;            // it has sent a record after its WELCOME
    int64_t piece_ms;      // it waits for a piece of its archive until then; 0 = it does not wait
    struct tenant *tenant; // of its group; it pays for incomplete results
    struct quota *quota;
};

// Tickets

static struct shown_ticket *shown_ticket_of(const struct gateway *g, const struct ticket *t)
{
    const struct shown_tickets *s = map_get(&g->shown_tickets, t->group_uid);
    return s && t->rank < s->n ? &s->at[t->rank] : NULL;
}

static int check_shown(const struct gateway *g, const struct ticket *t, struct err *err)
{
    const struct shown_ticket *s = shown_ticket_of(g, t);
    if (!s || t->attempt > s->attempt)
        return 0;
    if (t->attempt < s->attempt)
        return err_set(err, ERR_CONFLICT, "the ticket is for attempt %u of rank %u, which is over: it is at %u",
                       t->attempt, t->rank, s->attempt);
    if (t->serial < s->next)
        return err_set(err, ERR_UNAUTHORIZED, "the ticket of rank %u (number %" PRIu64 ") was used before", t->rank,
                       t->serial);
    return 0;
}

// Call this after the group has taken the worker, so the rank is valid.
static void note_shown(struct gateway *g, const struct ticket *t)
{
    struct shown_tickets *s = map_get(&g->shown_tickets, t->group_uid);
    if (!s) {
        s = xcalloc(1, sizeof *s);
        map_set(&g->shown_tickets, t->group_uid, s);
    }
    if (t->rank >= s->n) {
        s->at = xrealloc(s->at, (size_t)t->rank + 1, sizeof *s->at);
        for (; s->n <= t->rank; s->n++)
            s->at[s->n] = (struct shown_ticket){0};
    }
    s->at[t->rank] = (struct shown_ticket){t->attempt, t->serial + 1};
}

static void shown_tickets_free(struct shown_tickets *s)
{
    if (s)
        free(s->at);
    free(s);
}

void worker_forget(struct gateway *g, const char *group_uid)
{
    shown_tickets_free(map_del(&g->shown_tickets, group_uid));
}

void worker_forget_all(struct gateway *g)
{
    void *s;
    for (size_t i = 0; map_next(&g->shown_tickets, &i, NULL, &s);)
        shown_tickets_free(s);
    map_done(&g->shown_tickets);
}

// Archives

static void send_piece(struct connection *c, const struct archive_piece *p)
{
    struct archive_piece own = *p;
    _cleanup_(buf_done) struct buf body = BUF_INIT(ARCHIVE_PIECE_MAX + 2 * ARCHIVE_HEAD_MAX);
    struct err ignored = ERR_INIT; // if the queue is full, the worker asks again
    own.group = NULL;
    archive_piece_write(&own, &body);
    (void)connection_send(c, RECORD_ARCHIVE, buf_str(&body), body.len, &ignored);
}

// The worker asks for a piece. It asks for one at a time.
static int archive_record(struct connection *c, struct worker *w, const struct record *rec, struct err *err)
{
    const struct member *m = w->member;
    const int64_t now = clock_mono_ms(loop_clock(c->gateway->loop));
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct archive_piece p;
    int r = archive_piece_read(rec->body, rec->len, &a, &p, err);
    if (r == 0 && (!m->awaits || !str_eq(m->awaits, p.sha256)))
        r = err_set(err, ERR_PROTO, "ARCHIVE: rank %u does not wait for this archive", m->rank);
    if (r == 0 && m->group && now >= w->piece_ms) {
        p.group = w->ticket.group_uid;
        p.rank = m->rank;
        p.attempt = m->attempt;
        p.missing = !archives_ask(c->gateway, m->group->ns, &p);
        w->piece_ms = p.missing ? 0 : now + PIECE_MS;
        if (p.missing)
            send_piece(c, &p);
    }
    return r;
}

void worker_archive_piece(struct gateway *g, const char *ns, const struct archive_piece *p)
{
    const struct group *group = p->group ? router_group(&g->router, p->group) : NULL;
    const struct group *bootstrap = group && str_eq(group->ns, ns) ? group->bootstrap : NULL;
    const struct member *m = bootstrap ? group_member_at(bootstrap, p->rank) : NULL;
    if (!m || m->attempt != p->attempt || !m->peer.owner)
        return; // it has gone
    struct connection *c = CONTAINER_OF(m->peer.owner, struct connection, owner);
    struct worker *w = c->self;
    if (!w || !w->piece_ms || !str_eq(m->awaits, p->sha256))
        return;
    w->piece_ms = 0;
    send_piece(c, p);
}

// The role

static int worker_record(struct connection *c, const struct record *rec, struct err *err)
{
    struct worker *w = c->self;
    struct err bye = ERR_INIT;
    w->heard = true;
    if (rec->h.type == RECORD_ARCHIVE)
        return archive_record(c, w, rec, err);
    if (rec->h.type != RECORD_GOODBYE) {
        int r = router_member_record(&c->gateway->router, w->member, rec, err);
        c->want = w->member->peer.want;
        return r;
    }
    connection_close(c, FRAME_CLOSE_NORMAL, &bye); // its rank is free from now on
    return 0;
}

static void worker_changed(struct connection *c, struct peer *p)
{
    struct err err = ERR_INIT;
    if (!p->close_code) {
        ws_session_wake(c->ws);
        return;
    }
    err_set(&err, p->close_code, "%s", p->close_reason);
    connection_refuse(c, &err);
}

static void tell(const struct gateway *g, const struct ticket *t)
{
    if (g->config.worker)
        g->config.worker(g->config.ctx, t->group_uid);
}

static void worker_end(struct connection *c)
{
    struct gateway *g = c->gateway;
    struct worker *w = TAKE_PTR(c->self);
    struct shown_ticket *s = shown_ticket_of(g, &w->ticket);
    g->counters.workers--;
    bool unseen =
        (c->lost || c->gave_up) && !w->heard && clock_mono_ms(loop_clock(g->loop)) - w->since_ms < UNSEEN_WELCOME_MS;
    if (unseen && s && s->attempt == w->ticket.attempt && s->next == w->ticket.serial + 1)
        s->next = w->ticket.serial;
    if (c->cut)
        w->member->cut = arena_strdup(&w->member->arena, c->cut);
    router_leave(&g->router, w->member);
    tell(g, &w->ticket);
    quota_unref(w->quota);
    tenant_unref(w->tenant);
    free(w);
}

static bool worker_awaited(const struct connection *c)
{
    const struct worker *w = c->self;
    return w->member->n_pending > 0;
}

static const struct peer_role role = {.name = "worker",
                                      .pieces = true,
                                      .record = worker_record,
                                      .changed = worker_changed,
                                      .end = worker_end,
                                      .awaited = worker_awaited};

// Admission

static const char *welcome(struct connection *c, const struct ticket *t, const char *secret, struct arena *a)
{
    const struct gateway *g = c->gateway;
    const struct authority *authority = g->config.authority;
    const struct group *group = router_group(&g->router, t->group_uid);
    struct ticket next = *t;
    struct json_writer w = WRITER_INIT;
    next.serial++;
    writer_object(&w, NULL);
    writer_i64(&w, "version", 1);
    if (group)
        hello_group(group, t->attempt, &w);
    writer_str_set(&w, "peerSecret", secret);
    if (authority->ticket)
        writer_str_set(&w, "ticket", authority->ticket_text(authority->ctx, &next, a));
    writer_i64(&w, "maxBody", (int64_t)g->config.max_body);
    connection_share(c, &w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

static int believe(const struct hello *h, struct ticket *ret, struct err *err)
{
    if (!h->group || strlen(h->group) >= sizeof ret->group_uid || h->rank < 0 || h->rank > UINT32_MAX ||
        h->attempt > UINT32_MAX)
        return err_set(err, ERR_INVALID, "HELLO: a worker says its \"group\" (a UID), \"rank\" and \"attempt\"");
    snprintf(ret->group_uid, sizeof ret->group_uid, "%s", h->group);
    ret->rank = (uint32_t)h->rank;
    ret->attempt = (uint32_t)MAX(h->attempt, (int64_t)0);
    return 0;
}

static int check_ticket(const struct gateway *g, const struct hello *h, struct ticket *ret, struct err *err)
{
    const struct authority *authority = g->config.authority;
    if (!authority->ticket)
        return believe(h, ret, err);
    if (!h->ticket)
        return err_set(err, ERR_UNAUTHORIZED, "HELLO: a worker shows the ticket that its agent was given");
    int r = authority->ticket(authority->ctx, h->ticket, ret, err);
    if (r < 0)
        return r;
    if ((h->group && !str_eq(h->group, ret->group_uid)) || (h->rank >= 0 && h->rank != ret->rank) ||
        (h->attempt >= 0 && h->attempt != ret->attempt))
        return err_set(err, ERR_FORBIDDEN, "HELLO: the ticket is for another process: rank %u, attempt %u of group %s",
                       ret->rank, ret->attempt, ret->group_uid);
    return check_shown(g, ret, err);
}

int worker_hello(struct connection *c, const struct hello *h, const struct record *rec, struct err *err)
{
    struct gateway *g = c->gateway;
    const struct authority *authority = g->config.authority;
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct worker *w = xcalloc(1, sizeof *w);
    int r = check_ticket(g, h, &w->ticket, err);
    if (r == 0) {
        const char *secret = authority->peer_secret(authority->ctx, &w->ticket, &a);
        struct member_identity id = {.group_uid = w->ticket.group_uid,
                                     .attempt = w->ticket.attempt,
                                     .rank = w->ticket.rank,
                                     .address = c->address,
                                     .secret = secret,
                                     .welcome = welcome(c, &w->ticket, secret, &a)};
        if (g->config.place)
            g->config.place(g->config.ctx, id.group_uid, id.rank, &a, &id.pod, &id.node);
        r = router_join(&g->router, &id, rec->body, rec->len, ws_session_records(c->ws), &c->owner, &w->member, err);
    }
    if (r < 0) {
        free(w);
        return r;
    }
    snprintf(c->name, sizeof c->name, "rank %u, attempt %u of group %s", w->ticket.rank, w->ticket.attempt,
             w->ticket.group_uid);
    w->since_ms = clock_mono_ms(loop_clock(g->loop));
    // A worker that still waits for its code connects again with this ticket when it has the code.
    if (!w->member->awaits)
        note_shown(g, &w->ticket);
    g->counters.workers++;
    tell(g, &w->ticket);
    w->tenant = tenant_get(&g->router, w->member->group->ns);
    w->quota = quota_new(g->config.max_session, w->tenant->quota);
    connection_owner(c, w->tenant->ns);
    connection_serve(c, &role, w, w->quota);
    return 0;
}
