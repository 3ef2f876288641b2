// SPDX-License-Identifier: Apache-2.0
// How long calls stay away when the replica that a client is connected to is killed: until the next one is answered,
// by another replica, while other processes use all cores. Beside it, in turns: a new client's first call to a replica
// that lives, which is the least that moving over could take.
#include "bench/failover/replica.h"
#include "bench/lib/proc.h"
#include "bench/lib/samples.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "sdk/c/include/cadre/client.h"
#include "tests/unit/support/fake_names.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALL_MS = 20 * 1000, BURNERS_MAX = 64, STEADY_MS = 600, TARGET_MS = 1000 };

struct bench {
    struct replicas replicas;
    const char *worker, *module;
    int64_t rounds, burners;
    pid_t burns[BURNERS_MAX];
    struct rand rand;
    struct samples moved, floor;
    unsigned answered, failed; // "may have run", by name
};

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

static cadre_client *open_client(const struct bench *b, const char *host)
{
    cadre_client_options o;
    cadre_client_error error;
    cadre_client *c;
    char url[64];
    snprintf(url, sizeof url, "wss://%s:%d", host, b->replicas.port);
    cadre_client_options_init(&o);
    o.address = url;
    o.server_name = REPLICA_NAME;
    o.ns = REPLICA_NS;
    o.group = REPLICA_GROUP;
    o.token = REPLICA_TOKEN;
    o.ca_pem = b->replicas.certs.ca;
    if (cadre_client_open(&o, &c, &error) != CADRE_CLIENT_OK)
        die("a client", error.message);
    return c;
}

static double ms_since(int64_t start_us)
{
    return (double)(proc_now_us() - start_us) / 1000;
}

struct running {
    struct bench *bench;
    bool over, good;
    char why[1024]; // it is not good
};

static void on_done(void *ctx, const cadre_client_answer *a)
{
    struct running *r = ctx;
    r->over = true;
    r->good = !a->error;
    snprintf(r->why, sizeof r->why, "%s", a->error ? a->error->message : "");
    if (a->error && (!a->error->may_have_run || !strstr(a->error->message, "echo()")))
        die("a call", a->error->message);
    *(a->error ? &r->bench->failed : &r->bench->answered) += 1;
}

static void start(struct bench *b, cadre_client *c, struct running *r)
{
    cadre_client_request request;
    cadre_client_error error;
    uint64_t id;
    *r = (struct running){.bench = b};
    cadre_client_request_init(&request, "echo");
    request.args = (cadre_client_json){"[1]", 3};
    request.timeout_ms = CALL_MS;
    request.done = on_done;
    request.ctx = r;
    if (cadre_client_start(c, &request, &id, &error) != CADRE_CLIENT_OK)
        die("a call", error.message);
}

static bool answered(cadre_client *c, const struct running *r)
{
    while (!r->over)
        cadre_client_wait(c, CALL_MS);
    return r->good;
}

static double first_call_ms(struct bench *b, unsigned replica)
{
    struct running r;
    int64_t begun = proc_now_us();
    cadre_client *c = open_client(b, b->replicas.addresses[replica]);
    start(b, c, &r);
    if (!answered(c, &r))
        die("a call", r.why);
    double ms = ms_since(begun);
    cadre_client_close(c);
    return ms;
}

// One call after the other. The replica is killed when one of them is anywhere on its way.
static double moving_over_ms(struct bench *b, cadre_client *c, unsigned victim)
{
    struct running r;
    uint64_t steps = rand_below(&b->rand, 4);
    double before_ms = (double)rand_range(&b->rand, STEADY_MS, 2 * STEADY_MS);
    for (int64_t begun = proc_now_us(); ms_since(begun) < before_ms;) {
        start(b, c, &r);
        if (!answered(c, &r))
            die("a call", r.why);
    }
    start(b, c, &r);
    for (uint64_t i = 0; i < steps && !r.over; i++)
        cadre_client_wait(c, 0);
    int64_t killed = proc_now_us();
    kill(b->replicas.pids[victim], SIGKILL);
    (void)answered(c, &r); // or it may have run
    do
        start(b, c, &r);
    while (!answered(c, &r));
    double ms = ms_since(killed);
    waitpid(b->replicas.pids[victim], NULL, 0);
    return ms;
}

static void burn(struct bench *b)
{
    for (int64_t i = 0; i < b->burners; i++) {
        b->burns[i] = fork();
        if (b->burns[i])
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile unsigned n = 0;; n++)
            ;
    }
}

static void run(struct bench *b)
{
    fake_names.addresses = "127.0.0.2 127.0.0.3";
    replicas_start(&b->replicas, b->worker, b->module);
    burn(b);
    for (unsigned i = 0; i < REPLICAS; i++) // the worker is there
        (void)first_call_ms(b, i);
    cadre_client *c = open_client(b, REPLICA_NAME);
    for (int64_t round = 0; round < b->rounds; round++) {
        unsigned victim = (unsigned)(round % REPLICAS);
        samples_add(&b->floor, first_call_ms(b, (victim + 1) % REPLICAS));
        samples_add(&b->moved, moving_over_ms(b, c, victim));
        replica_start(&b->replicas, victim);
        (void)first_call_ms(b, victim);
    }
    cadre_client_close(c);
    for (int64_t i = 0; i < b->burners; i++) {
        kill(b->burns[i], SIGKILL);
        waitpid(b->burns[i], NULL, 0);
    }
    replicas_stop(&b->replicas);
}

static void print_row(const char *name, const struct samples *s, const char *target)
{
    printf("| %s | %.1f ms | %.1f ms | %.1f ms | %s |\n", name, samples_quantile(s, 0.5), samples_quantile(s, 0.99),
           samples_quantile(s, 1), target);
}

static int report(const struct bench *b)
{
    struct samples ratios = {.n = 0};
    samples_ratios(&b->moved, &b->floor, &ratios);
    printf("| %zu times, beside %lld busy processes on %ld cores | p50 | p99 | max | target |\n", b->moved.n,
           (long long)b->burners, sysconf(_SC_NPROCESSORS_ONLN));
    puts("|---|---:|---:|---:|---:|");
    print_row("floor: a new client's first answer from a replica that lives (TCP, TLS, HELLO, call)", &b->floor, "");
    print_row("a replica's death to the next answer from the other one", &b->moved, "p99 1,000 ms");
    printf("| the same against the floor | %.2fx | %.2fx | %.2fx | |\n", samples_quantile(&ratios, 0.5),
           samples_quantile(&ratios, 0.99), samples_quantile(&ratios, 1));
    printf("\n%u calls answered, %u failed as \"may have run\", by name, none otherwise\n", b->answered, b->failed);
    return samples_quantile(&b->moved, 0.99) <= TARGET_MS ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option table[] = {{"worker", required_argument, NULL, 'w'},
                                          {"module", required_argument, NULL, 'm'},
                                          {"rounds", required_argument, NULL, 'r'},
                                          {"busy", required_argument, NULL, 'b'},
                                          {0}};
    struct bench b = {.rounds = 50, .burners = sysconf(_SC_NPROCESSORS_ONLN)};
    bool good = true;
    rand_seed_system(&b.rand);
    for (int opt; (opt = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        if (opt == 'w')
            b.worker = optarg;
        else if (opt == 'm')
            b.module = optarg;
        else if (opt == 'r')
            good = good && str_to_i64(optarg, &b.rounds) && b.rounds >= 1 && b.rounds <= SAMPLES_MAX;
        else if (opt == 'b')
            good = good && str_to_i64(optarg, &b.burners) && b.burners >= 0 && b.burners <= BURNERS_MAX;
        else
            good = false;
    }
    if (!good || !b.worker || !b.module)
        die("options", "bench/failover/run.sh knows them");
    b.burners = MIN(b.burners, (int64_t)BURNERS_MAX);
    run(&b);
    return report(&b);
}
