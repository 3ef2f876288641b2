// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/server.h"

#include "bench/lib/proc.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/gateway/gateway.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ATTEMPT = 1 };
enum { KEPT_BYTES = 1 << 20 }; // as the operator

// The authority: it believes all tickets.

static void format_ticket(char out[SERVER_TICKET_SIZE], const char *group, uint32_t rank, uint64_t serial)
{
    snprintf(out, SERVER_TICKET_SIZE, "%s/%u/%" PRIu64, group, rank, serial);
}

void server_ticket(char out[SERVER_TICKET_SIZE], const char *group, uint32_t rank)
{
    format_ticket(out, group, rank, (uint64_t)proc_now_us()); // grows: a rank may come again
}

static uint64_t admit(void *ctx, const char *token, const char *ns, authority_done_fn done, void *done_ctx)
{
    struct err err = ERR_INIT;
    (void)ctx, (void)token, (void)ns;
    done(done_ctx, &(struct client_user){.name = "bench"}, 0, &err);
    return 0;
}

static void cancel(void *ctx, uint64_t id)
{
    (void)ctx, (void)id;
}

static int no_pod(void *ctx, const char *token, struct arena *a, struct pod_claims *ret, struct err *err)
{
    (void)ctx, (void)token, (void)a, (void)ret;
    return err_set(err, ERR_UNAUTHORIZED, "there are no agents here");
}

static int read_ticket(void *ctx, const char *text, struct ticket *ret, struct err *err)
{
    int64_t rank, serial;
    char copy[SERVER_TICKET_SIZE], *slash[2];
    (void)ctx;
    snprintf(copy, sizeof copy, "%s", text);
    slash[0] = strchr(copy, '/');
    slash[1] = slash[0] ? strchr(slash[0] + 1, '/') : NULL;
    if (!slash[1])
        return err_set(err, ERR_UNAUTHORIZED, "no ticket: %.64s", text);
    *slash[0] = *slash[1] = '\0';
    if (!str_to_i64(slash[0] + 1, &rank) || !str_to_i64(slash[1] + 1, &serial))
        return err_set(err, ERR_UNAUTHORIZED, "no ticket: %.64s", text);
    *ret = (struct ticket){.attempt = ATTEMPT, .rank = (uint32_t)rank, .serial = (uint64_t)serial};
    memcpy(ret->group_uid, copy, MIN(strlen(copy), sizeof ret->group_uid - 1));
    return 0;
}

static const char *ticket_text(void *ctx, const struct ticket *t, struct arena *a)
{
    char text[SERVER_TICKET_SIZE];
    (void)ctx;
    format_ticket(text, t->group_uid, t->rank, t->serial);
    return arena_strdup(a, text);
}

static const char *no_secret(void *ctx, const struct ticket *t, struct arena *a)
{
    (void)ctx, (void)t, (void)a;
    return NULL;
}

static const struct authority authority = {
    .client = admit,
    .cancel = cancel,
    .pod = no_pod,
    .ticket = read_ticket,
    .ticket_text = ticket_text,
    .peer_secret = no_secret,
};

// The turns of its loop

#define ARITHMETIC 50000 // multiplications, 0.1 ms

static int64_t cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

// The CPU time of some arithmetic.
static int64_t arithmetic_us(void)
{
    volatile uint64_t x = 1;
    int64_t before_us = cpu_us();
    for (int i = 0; i < ARITHMETIC; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return cpu_us() - before_us;
}

struct server_turns *server_turns_new(void)
{
    void *turns = mmap(NULL, sizeof(struct server_turns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (turns == MAP_FAILED)
        exit(1);
    struct server_turns *t = turns;
    t->arithmetic_us = INT64_MAX;
    for (int i = 0; i < 100; i++)
        t->arithmetic_us = MIN(t->arithmetic_us, arithmetic_us());
    return t;
}

static void note_long(struct server_turns *t, int64_t took_us)
{
    bool slow = arithmetic_us() > 2 * t->arithmetic_us;
    t->over_2_ms++;
    t->slow += slow;
    if (!slow)
        t->longest_cpu_us = MAX(t->longest_cpu_us, took_us);
}

static void on_turn(void *ctx, int64_t worked_us)
{
    static int64_t before_us; // 0 = the process begins, which is not a turn
    struct server_turns *t = ctx;
    int64_t took_us = before_us ? cpu_us() - before_us : 0;
    t->n++;
    if (took_us > 2000)
        note_long(t, took_us);
    else
        t->longest_cpu_us = MAX(t->longest_cpu_us, took_us);
    before_us = cpu_us();
    t->longest_us = MAX(t->longest_us, worked_us);
}

// The process

static void fail(const struct err *err)
{
    fprintf(stderr, "bench: the proxy: %s\n", err->msg);
    _exit(1);
}

static void serve(const struct server *s, const struct certs *certs, const struct server_group *groups, unsigned n,
                  int report)
{
    // A look for events before it sleeps would count as work.
    const struct gateway_config config = {.authority = &authority, .share = true, .sleeps = s->turns != NULL};
    struct err err = ERR_INIT;
    struct loop *loop = loop_new();
    mem_keep(KEPT_BYTES, KEPT_BYTES, KEPT_BYTES / 8);
    if (s->turns)
        loop_observe(loop, on_turn, s->turns);
    struct gateway *g = gateway_new(loop, &config, &err);
    int ports[2];
    if (!g || gateway_certificate(g, certs->server_cert, certs->server_key, certs->ca, &err) < 0)
        fail(&err);
    for (int tls = 0; tls < 2; tls++)
        if ((ports[tls] = gateway_listen(g, "127.0.0.1:0", tls, &err)) < 0)
            fail(&err);
    if (gateway_listen(g, s->socket, false, &err) < 0)
        fail(&err);
    for (unsigned i = 0; i < n; i++)
        router_group_set(gateway_router(g), &(struct group_facts){.uid = groups[i].name,
                                                                  .ns = SERVER_NS,
                                                                  .name = groups[i].name,
                                                                  .world = groups[i].world,
                                                                  .attempt = ATTEMPT,
                                                                  .oldest = ATTEMPT});
    if (write(report, ports, sizeof ports) != (ssize_t)sizeof ports)
        _exit(1);
    loop_run(loop);
    _exit(1);
}

void server_start(struct server *s, const struct certs *certs, const struct server_group *groups, unsigned n)
{
    int report[2], ports[2];
    char folder[] = "/tmp/bench-calls-XXXXXX";
    if (pipe(report) < 0 || !mkdtemp(folder))
        exit(1);
    snprintf(s->socket, sizeof s->socket, "unix:%s/socket", folder);
    s->pid = fork();
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(s, certs, groups, n, report[1]);
    }
    close(report[1]);
    if (read(report[0], ports, sizeof ports) != (ssize_t)sizeof ports)
        exit(1); // it has said why
    close(report[0]);
    s->port = ports[0];
    s->tls_port = ports[1];
}

void server_stop(struct server *s)
{
    char *path = s->socket + strlen("unix:");
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
}
