// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/include/cadre/client.h"
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "tests/chaos/chaos.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IN_FLIGHT = 24, LONG = 300 * 1000, TURN_MS = 10, LAST_TURNS = 60 * 1000 };

struct task {
    struct task *next;
    struct client *owner;
    int64_t token, rank;
    enum chaos_kind kind;
    uint64_t id;
    cadre_client *client;
    unsigned answers;
};

struct client {
    cadre_client *clients[CHAOS_PROXIES];
    struct task *tasks; // the newest first
    size_t n, n_answered;
    struct rand rand;
    int64_t first;
    int fd, wrong;
};

static volatile sig_atomic_t stopping;

static void on_term(int signo)
{
    (void)signo;
    stopping = 1;
}

static uint64_t below(struct client *c, uint64_t n)
{
    return rand_below(&c->rand, n);
}

static void note(struct client *c, const char *line, int len)
{
    if (write(c->fd, line, (size_t)len) != len)
        abort();
}

static void wrong(struct client *c, const struct task *t, const char *wanted, cadre_client_json result)
{
    fprintf(stderr, "call %" PRId64 " (kind %d): %.*s, not %s\n", t->token, (int)t->kind,
            (int)MIN(result.len, (size_t)200), result.text ? result.text : "an error", wanted);
    c->wrong = 1;
}

static void check_result(struct client *c, const struct task *t, const cadre_client_answer *a)
{
    char want[256];
    int64_t v = t->token * 100;
    if (t->kind == CHAOS_QUIET)
        snprintf(want, sizeof want, "null");
    else if (t->kind == CHAOS_ANY || t->kind == CHAOS_ZERO || t->kind == CHAOS_ONE)
        snprintf(want, sizeof want, "%" PRId64, v + (t->kind == CHAOS_ANY ? a->rank : t->rank));
    else
        snprintf(want, sizeof want, "[%" PRId64 ",%" PRId64 ",%" PRId64 "]", v, v + 1, v + 2);
    if (a->result.len != strlen(want) || memcmp(a->result.text, want, a->result.len) != 0)
        wrong(c, t, want, a->result);
}

static void on_done(void *ctx, const cadre_client_answer *a)
{
    struct task *t = ctx;
    struct client *c = t->owner;
    char line[512];
    if (t->answers++)
        wrong(c, t, "one answer", a->result);
    c->n_answered++;
    if (a->error) {
        note(c, line,
             snprintf(line, sizeof line, "E %" PRId64 " %s %d %.300s\n", t->token, a->error->name,
                      a->error->may_have_run, a->error->message));
    } else {
        check_result(c, t, a);
        note(c, line, snprintf(line, sizeof line, "R %" PRId64 "\n", t->token));
    }
}

static void put_args(struct client *c, const struct task *t, struct buf *args)
{
    int copies = t->kind == CHAOS_EACH ? CHAOS_RANKS : 1;
    unsigned ms = (unsigned)(below(c, 4) ? 0 : below(c, 20)), pad = below(c, 16) ? 0 : LONG;
    if (t->kind == CHAOS_EACH)
        buf_putc(args, '[');
    for (int i = 0; i < copies; i++)
        buf_printf(args, "%s[%" PRId64 ",%u%*s]", i ? "," : "", t->token, ms, (int)pad, "");
    if (t->kind == CHAOS_EACH)
        buf_putc(args, ']');
}

static void describe(struct client *c, struct task *t, cadre_client_request *r)
{
    cadre_client_request_init(r, "note");
    r->done = on_done;
    r->ctx = t;
    r->timeout_ms = below(c, 3) ? 10000 : 20 + (int64_t)below(c, 2000);
    r->refuse_when_not_ready = below(c, 8) == 0;
    if (t->kind == CHAOS_EACH)
        r->dispatch = CADRE_CLIENT_ALL_TO_ALL;
    if (t->kind == CHAOS_ONE)
        r->rank = t->rank;
    if (t->kind == CHAOS_ANY)
        r->execute = CADRE_CLIENT_EXECUTE_ANY;
    if (t->kind == CHAOS_ZERO)
        r->execute = CADRE_CLIENT_EXECUTE_RANK_ZERO;
    r->no_result = t->kind == CHAOS_QUIET;
    r->idempotent = t->kind == CHAOS_AGAIN;
    r->max_retries = t->kind == CHAOS_AGAIN ? 5 : 0;
}

static void begin(struct client *c)
{
    struct buf args = BUF_INIT(4 * LONG);
    struct task *t = xcalloc(1, sizeof *t);
    cadre_client_request r;
    cadre_client_error e;
    char line[128];
    *t = (struct task){.next = c->tasks,
                       .owner = c,
                       .token = c->first + (int64_t)c->n,
                       .kind = (enum chaos_kind)below(c, CHAOS_KINDS),
                       .client = c->clients[below(c, CHAOS_PROXIES)]};
    t->rank = t->kind == CHAOS_ONE ? (int64_t)below(c, CHAOS_RANKS) : 0;
    describe(c, t, &r);
    put_args(c, t, &args);
    r.args = (cadre_client_json){buf_str(&args), args.len};
    note(c, line, snprintf(line, sizeof line, "S %" PRId64 " %d %" PRId64 "\n", t->token, (int)t->kind, t->rank));
    if (cadre_client_start(t->client, &r, &t->id, &e) != CADRE_CLIENT_OK) {
        fprintf(stderr, "call %" PRId64 " is not accepted: %s\n", t->token, e.message);
        c->wrong = 1;
    }
    c->tasks = t;
    c->n++;
    buf_done(&args);
}

static void cancel_some(struct client *c)
{
    struct task *t = c->tasks;
    for (uint64_t skip = below(c, IN_FLIGHT); t && skip; skip--)
        t = t->next;
    if (t && !t->answers)
        cadre_client_cancel(t->client, t->id);
}

static void turn(struct client *c)
{
    for (size_t i = 0; i < CHAOS_PROXIES; i++)
        cadre_client_wait(c->clients[i], cadre_client_pending(c->clients[i]) ? TURN_MS / 2 : 0);
}

static void open_clients(struct client *c, const char *const sockets[CHAOS_PROXIES])
{
    for (size_t i = 0; i < CHAOS_PROXIES; i++) {
        cadre_client_options o;
        cadre_client_error e;
        char address[256];
        snprintf(address, sizeof address, "unix:%s", sockets[i]);
        cadre_client_options_init(&o);
        o.address = address;
        o.ns = CHAOS_NS;
        o.group = CHAOS_GROUP;
        o.unreachable_ms = 2000;
        if (cadre_client_open(&o, &c->clients[i], &e) != CADRE_CLIENT_OK) {
            fprintf(stderr, "%s\n", e.message);
            exit(1);
        }
    }
}

static int finish(struct client *c)
{
    for (int i = 0; i < LAST_TURNS && c->n_answered < c->n; i++)
        turn(c);
    if (c->n_answered < c->n)
        fprintf(stderr, "%zu of %zu calls were not answered\n", c->n - c->n_answered, c->n);
    int status = c->wrong || c->n_answered < c->n;
    for (size_t i = 0; i < CHAOS_PROXIES; i++)
        cadre_client_close(c->clients[i]);
    for (struct task *t; (t = c->tasks);) {
        c->tasks = t->next;
        free(t);
    }
    close(c->fd);
    return status;
}

int client_run(const char *const sockets[CHAOS_PROXIES], const char *file, unsigned n, uint64_t seed)
{
    struct client c = {.first = (int64_t)n * CHAOS_TOKENS,
                       .fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)};
    signal(SIGTERM, on_term);
    rand_seed(&c.rand, seed);
    open_clients(&c, sockets);
    while (!stopping && c.n < CHAOS_TOKENS) {
        while (c.n - c.n_answered < IN_FLIGHT && below(&c, 8))
            begin(&c);
        if (below(&c, 20) == 0)
            cancel_some(&c);
        turn(&c);
    }
    return finish(&c);
}
