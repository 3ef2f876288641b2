// SPDX-License-Identifier: Apache-2.0
// The cost of calls: a client with the client library, the proxy and cadre-worker, each a process, over TCP on
// loopback; beside bare sockets through a relay, and beside Ray. run.sh builds and starts it.
#include "bench/calls/batch.h"
#include "bench/calls/caller.h"
#include "bench/calls/floor.h"
#include "bench/calls/load.h"
#include "bench/calls/options.h"
#include "bench/calls/peer.h"
#include "bench/calls/ranks.h"
#include "bench/calls/server.h"
#include "bench/lib/proc.h"
#include "bench/lib/samples.h"
#include "common/base/mem.h"

#include <cadre/client.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEADER = 16 + 30, IDLE_MAX = 10 * 1000, MANY = 400, BATCH_RANKS = 4, TLS_WORKER = 5, WORKERS };

// Simulated ranks answer calls whose body is too long for a worker.
#define BIG ((size_t)60 << 20)

static struct options options;
static struct certs certs;
static struct server server;
static struct peer ray, ray_client, python;
static pid_t workers[WORKERS], host_worker; // of "one", four of "four", one of "tls"

static bool wanted(const char *name)
{
    return !options.only || strstr(name, options.only);
}

enum way { TCP, TLS, ONE_HOST };

static cadre_client *open_server(enum way way)
{
    char address[64];
    snprintf(address, sizeof address, "%s://127.0.0.1:%d", way == TLS ? "wss" : "ws",
             way == TLS ? server.tls_port : server.port);
    return caller_open(way == ONE_HOST ? server.socket : address, SERVER_NS, way == TLS ? certs.ca : NULL, 0);
}

static void start_worker(pid_t *ret, const char *url, const char *group, uint32_t rank, uint32_t world)
{
    char ticket[SERVER_TICKET_SIZE], number[16], size[16];
    server_ticket(ticket, group, rank);
    snprintf(number, sizeof number, "%u", rank);
    snprintf(size, sizeof size, "%u", world);
    *ret = fork();
    if (*ret)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("RANK", number, 1);
    setenv("WORLD_SIZE", size, 1);
    setenv("CADRE_TICKET", ticket, 1);
    setenv("CADRE_GROUP_UID", group, 1);
    setenv("CADRE_ATTEMPT", "1", 1);
    setenv("CADRE_CA", certs.ca, 1);
    if (!freopen("/dev/null", "w", stderr))
        _exit(1);
    execl(options.worker, options.worker, "--module", options.module, "--connect", url, (char *)NULL);
    _exit(127);
}

// The table: Cadre's median, and the medians of its ratios to what was measured in the same round.

struct row {
    const char *name;
    struct samples ours, p50, floor, ray, ray_client;
    struct samples cpu[3]; // microseconds a call: client, proxy, the one that answers
};

static void print_head(void)
{
    printf("%-34s %12s %10s %12s %8s %12s %8s %10s %12s %8s %8s   %s\n", "", "Cadre/s", "p50 us", "bare/s", "ratio",
           "Ray/s", "ratio", "target", "Ray Client/s", "ratio", "target", "CPU us a call: client, proxy, worker");
}

static void print_ratio(const struct row *row, const struct samples *to)
{
    struct samples ratios;
    samples_ratios(&row->ours, to, &ratios);
    if (ratios.n)
        printf(" %12.0f %7.3fx", samples_median(to), samples_median(&ratios));
    else
        printf(" %12s %8s", "", "");
}

static void print_row(const struct row *row, const char *target, const char *client_target, double bytes)
{
    printf("%-34s %12.0f", row->name, samples_median(&row->ours));
    if (row->p50.n)
        printf(" %10.0f", samples_median(&row->p50));
    else
        printf(" %10s", "");
    print_ratio(row, &row->floor);
    print_ratio(row, &row->ray);
    printf(" %10s", target);
    print_ratio(row, &row->ray_client);
    printf(" %8s   %.1f %.1f %.1f", client_target ? client_target : "", samples_median(&row->cpu[0]),
           samples_median(&row->cpu[1]), samples_median(&row->cpu[2]));
    if (bytes > 1000)
        printf("   %.2f GB/s each way", samples_median(&row->ours) * bytes / 1e9);
    printf("\n");
    fflush(stdout);
}

struct line {
    const char *name;
    struct load_call call;
    unsigned ranks;
    enum way way;
    const char *target;
    pid_t answering;           // rank 0
    struct peer *by;           // who calls; NULL = this program
    const char *client_target; // against Ray Client; NULL = none
};

static void read_cpu(const struct line *l, double out[3])
{
    out[0] = proc_cpu_s(l->by ? l->by->pid : getpid());
    out[1] = proc_cpu_s(server.pid);
    out[2] = proc_cpu_s(l->answering);
}

static void measure_ours(cadre_client *c, const struct line *l, struct row *row)
{
    const struct load_call *call = &l->call;
    double p50, rate, before[3], after[3];
    read_cpu(l, before);
    if (l->by)
        rate = peer_rate(l->by, l->ranks, call->bytes, call->in_flight, options.seconds);
    else
        rate = load_rate(c, call, options.seconds, &p50);
    read_cpu(l, after);
    samples_add(&row->ours, rate);
    if (!l->by)
        samples_add(&row->p50, p50);
    for (int i = 0; i < 3; i++)
        samples_add(&row->cpu[i], (after[i] - before[i]) * 1e6 / (rate * options.seconds));
}

static double bare_rate(struct floor *f, const struct load_call *call)
{
    double unused;
    size_t len = call->bytes + HEADER;
    return call->in_flight > 1 ? floor_rate_many(f, len, len, call->in_flight, options.seconds)
                               : floor_rate(f, len, len, options.seconds, &unused);
}

// In turns, because the machine may also do other work.
static void measure(const struct line *l)
{
    struct row row = {.name = l->name};
    const struct load_call *call = &l->call;
    bool floored = l->way != ONE_HOST;
    struct floor floor;
    cadre_client *c = open_server(l->way);
    if (floored)
        floor_start(&floor, l->ranks);
    for (int i = 0; i < options.rounds; i++) {
        measure_ours(c, l, &row);
        if (floored)
            samples_add(&row.floor, bare_rate(&floor, call));
        samples_add(&row.ray, peer_rate(&ray, l->ranks, call->bytes, call->in_flight, options.seconds));
        samples_add(&row.ray_client, peer_rate(&ray_client, l->ranks, call->bytes, call->in_flight, options.seconds));
    }
    if (floored)
        floor_stop(&floor);
    cadre_client_close(c);
    print_row(&row, l->target, l->client_target, (double)call->bytes);
}

static void measure_calls(void)
{
    pid_t simulated = ranks_start(server.port, "simulated", 0, 1);
    const struct line lines[] = {
        {"one at a time", {"one", "echo", 10, 1}, 1, TCP, "10x", workers[0], NULL, .client_target = "45x"},
        {"1,000 in flight", {"one", "echo", 10, 1000}, 1, TCP, "150x", workers[0], NULL, .client_target = "900x"},
        {"group of 4", {"four", "echo", 10, 1}, 4, TCP, "18x", workers[1], NULL, .client_target = "75x"},
        {"1 MiB echo", {"one", "echo", 1 << 20, 1}, 1, TCP, "2x", workers[0], NULL, .client_target = "7x"},
        {"15 MiB echo", {"one", "echo", 15 << 20, 1}, 1, TCP, "", workers[0], NULL},
        {"one at a time, TLS", {"tls", "echo", 10, 1}, 1, TLS, "8x", workers[TLS_WORKER], NULL},
        {"1,000 in flight, TLS", {"tls", "echo", 10, 1000}, 1, TLS, "", workers[TLS_WORKER], NULL},
        {"1 MiB echo, TLS", {"tls", "echo", 1 << 20, 1}, 1, TLS, "", workers[TLS_WORKER], NULL},
        {"15 MiB echo, TLS", {"tls", "echo", 15 << 20, 1}, 1, TLS, "", workers[TLS_WORKER], NULL},
        {"60 MiB echo, simulated rank",
         {"simulated", "echo", BIG, 1},
         1,
         TCP,
         "0.6x bare",
         simulated,
         NULL,
         .client_target = "6x"},
        {"1 MiB echo, one host", {"host", "echo", 1 << 20, 1, .batch = true}, 1, ONE_HOST, "4x", host_worker, NULL},
        {"60 MiB echo, one host", {"host", "echo", BIG, 1, .batch = true}, 1, ONE_HOST, "1x", host_worker, NULL},
        {"Python, one at a time", {"one", "echo", 10, 1}, 1, TCP, "5x", workers[0], &python},
        {"Python, 1,000 in flight", {"one", "echo", 10, 1000}, 1, TCP, "20x", workers[0], &python},
    };
    print_head();
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (wanted(lines[i].name) && (!lines[i].by || lines[i].by->pid))
            measure(&lines[i]);
    ranks_stop(simulated);
}

static const char broadcast[] = "broadcast to simulated ranks, p50";
static const char beside_idle[] = "one at a time, beside idle workers";
static const char long_batch[] = "1 GiB batch over 4 simulated ranks";
static const char beside_bulk[] = "one at a time, beside a 60 MiB echo";

static const struct {
    const char *name;
    size_t bytes;
    const char *target;
} broadcasts[] = {{"10 B to 400 ranks", 10, "4 ms"}, {"410 KB to 400 ranks", 410 * 1000, "45 ms"}};

static bool wanted_broadcast(size_t i)
{
    return wanted(broadcast) || wanted(broadcasts[i].name);
}

// Broadcast to many simulated ranks: a call is done when all have answered.
static void measure_broadcast(void)
{
    pid_t ranks = ranks_start(server.port, "many", 0, MANY);
    struct floor floor;
    cadre_client *c = open_server(TCP);
    floor_start(&floor, MANY);
    printf("\n%-34s %12s %12s %8s %8s   %s\n", broadcast, "Cadre ms", "bare ms", "ratio", "target",
           "CPU ms a call: proxy, ranks");
    for (size_t i = 0; i < ARRAY_LEN(broadcasts); i++) {
        if (!wanted_broadcast(i))
            continue;
        const struct load_call call = {"many", "take", broadcasts[i].bytes, 1};
        struct samples ours = {.n = 0}, bare = {.n = 0}, ratios;
        const pid_t who[] = {server.pid, ranks, floor.relay, floor.ends};
        struct samples cpu[ARRAY_LEN(who)] = {{.n = 0}};
        for (int k = 0; k < options.rounds; k++) {
            double p50, before[ARRAY_LEN(who)], calls[2];
            for (size_t j = 0; j < ARRAY_LEN(who); j++)
                before[j] = proc_cpu_s(who[j]);
            calls[0] = load_rate(c, &call, options.seconds, &p50) * options.seconds + LOAD_WARM;
            samples_add(&ours, p50 / 1e3);
            calls[1] = floor_rate(&floor, call.bytes + HEADER, HEADER, options.seconds, &p50) * options.seconds;
            samples_add(&bare, p50 / 1e3);
            for (size_t j = 0; j < ARRAY_LEN(who); j++)
                samples_add(&cpu[j], (proc_cpu_s(who[j]) - before[j]) * 1e3 / calls[j / 2]);
        }
        samples_ratios(&ours, &bare, &ratios);
        printf("%-34s %12.2f %12.2f %7.2fx %8s   %.1f %.1f, bare %.1f %.1f\n", broadcasts[i].name,
               samples_median(&ours), samples_median(&bare), samples_median(&ratios), broadcasts[i].target,
               samples_median(&cpu[0]), samples_median(&cpu[1]), samples_median(&cpu[2]), samples_median(&cpu[3]));
    }
    floor_stop(&floor);
    cadre_client_close(c);
    ranks_stop(ranks);
}

// The same call while other workers are connected and silent: without them, with, and without again.
static void measure_idle(void)
{
    static const unsigned steps[] = {0, 1000, IDLE_MAX, 0};
    const struct load_call call = {"one", "echo", 10, 1};
    double none = 0;
    printf("\n%-34s %12s %8s %8s\n", beside_idle, "Cadre/s", "ratio", "target");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct samples rates = {.n = 0};
        unsigned n = MIN(steps[i], options.idle);
        pid_t idle = n ? ranks_start(server.port, "idle", 0, n) : 0;
        cadre_client *c = open_server(TCP); // not before: it would be silent for longer than the proxy puts up with
        for (int k = 0; k < options.rounds; k++) {
            double p50;
            samples_add(&rates, load_rate(c, &call, options.seconds, &p50));
        }
        if (i == 0)
            none = samples_median(&rates);
        printf("%-34u %12.0f %7.2fx %8s\n", n, samples_median(&rates), samples_median(&rates) / none, n ? "0.7x" : "");
        fflush(stdout);
        cadre_client_close(c);
        if (n)
            ranks_stop(idle);
    }
}

// Split, echoed and joined; beside it the same number of bytes there and back through the bare relay.
static void measure_batch(void)
{
    const size_t bytes = (size_t)1 << 30;
    char address[64];
    struct samples first = {.n = 0}, seconds = {.n = 0}, memory = {.n = 0}, bare = {.n = 0}, cpu[3] = {{.n = 0}};
    struct floor floor;
    pid_t ranks[BATCH_RANKS];
    const struct batch_processes of = {server.pid, ranks, ARRAY_LEN(ranks)};
    snprintf(address, sizeof address, "ws://127.0.0.1:%d", server.port);
    for (uint32_t i = 0; i < ARRAY_LEN(ranks); i++)
        ranks[i] = ranks_start(server.port, "batch", i, 1);
    floor_start(&floor, 1);
    for (int k = 0; k < options.rounds; k++) {
        struct batch_numbers n;
        double p50;
        batch_call(address, SERVER_NS, "batch", bytes, &of, &n);
        samples_add(&first, n.first);
        samples_add(&seconds, n.seconds);
        samples_add(&memory, n.proxy_mb);
        for (size_t i = 0; i < ARRAY_LEN(cpu); i++)
            samples_add(&cpu[i], n.cpu[i]);
        floor_rate(&floor, bytes, bytes, 0.1, &p50);
        samples_add(&bare, p50 / 1e6);
    }
    floor_stop(&floor);
    double s = samples_median(&seconds), mb = samples_median(&memory), size = (double)bytes / 1e9;
    printf("\n%-34s %.2f s, %.2f GB/s (target 0.5), the first %.2f s; bare relay %.2f s; the proxy: +%.0f MB, %.3fx "
           "(target 1.2x), CPU s: client %.2f, proxy %.2f, ranks %.2f\n",
           long_batch, s, size / s, samples_median(&first), samples_median(&bare), mb, mb / 1e3 / size,
           samples_median(&cpu[0]), samples_median(&cpu[1]), samples_median(&cpu[2]));
    for (size_t i = 0; i < ARRAY_LEN(ranks); i++)
        ranks_stop(ranks[i]);
}

static pid_t start_bulk(void)
{
    const struct load_call call = {"simulated", "echo", BIG, 1};
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (double unused; load_rate(open_server(TCP), &call, 3600, &unused) > 0;)
        ;
    _exit(1);
}

// The same call while another client has long bodies echoed: without it, with, and without again.
static void measure_beside_bulk(void)
{
    static const char *const steps[] = {"alone", "beside", "alone again"};
    const struct load_call call = {"one", "echo", 10, 1};
    pid_t simulated = ranks_start(server.port, "simulated", 0, 1);
    cadre_client *c = open_server(TCP);
    double alone = 0;
    printf("\n%-34s %12s %10s %8s\n", beside_bulk, "Cadre/s", "p50 us", "ratio");
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct samples rates = {.n = 0}, p50s = {.n = 0};
        pid_t bulk = i == 1 ? start_bulk() : 0;
        for (int k = 0; k < options.rounds; k++) {
            double p50;
            samples_add(&rates, load_rate(c, &call, options.seconds, &p50));
            samples_add(&p50s, p50);
        }
        if (i == 0)
            alone = samples_median(&rates);
        printf("%-34s %12.0f %10.0f %7.2fx\n", steps[i], samples_median(&rates), samples_median(&p50s),
               samples_median(&rates) / alone);
        if (bulk)
            ranks_stop(bulk);
    }
    cadre_client_close(c);
    ranks_stop(simulated);
}

// One kind of call, of a proxy that runs already.
static void measure_server(void)
{
    const struct load_call call = {options.group, options.method, 0, options.in_flight, options.args};
    cadre_client *c = caller_open(options.server, options.ns, NULL, 0);
    struct samples rates = {.n = 0}, p50s = {.n = 0};
    for (int i = 0; i < options.rounds; i++) {
        double p50;
        samples_add(&rates, load_rate(c, &call, options.seconds, &p50));
        samples_add(&p50s, p50);
    }
    cadre_client_close(c);
    printf("%.0f %.0f\n", samples_median(&rates), samples_median(&p50s));
}

static void measure_all(void)
{
    char address[64], url[96];
    static const struct server_group groups[] = {
        {"one", 1},     {"four", 4},        {"simulated", 1},       {"host", 1},
        {"many", MANY}, {"idle", IDLE_MAX}, {"batch", BATCH_RANKS}, {"tls", 1},
    };
    certs_make(&certs);
    server_start(&server, &certs, groups, ARRAY_LEN(groups));
    snprintf(address, sizeof address, "ws://127.0.0.1:%d", server.port);
    snprintf(url, sizeof url, "%s" SERVER_PATH, address);
    start_worker(&workers[0], url, "one", 0, 1);
    for (unsigned i = 1; i < TLS_WORKER; i++)
        start_worker(&workers[i], url, "four", i - 1, TLS_WORKER - 1);
    snprintf(url, sizeof url, "wss://127.0.0.1:%d" SERVER_PATH, server.tls_port);
    start_worker(&workers[TLS_WORKER], url, "tls", 0, 1);
    start_worker(&host_worker, server.socket, "host", 0, 1);
    peer_start(&ray, options.python, options.ray_script, NULL);
    peer_start(&ray_client, options.python, options.ray_script, "client");
    peer_start(&python, options.client_python, options.client_script, address);
    printf("%s, %s, %s, load average %.1f\n", ray.pid ? ray.version : "without Ray",
           options.python ? ray_client.version : "without Ray Client", python.pid ? python.version : "without Python",
           proc_load());
    measure_calls();
    peer_stop(&ray);
    peer_stop(&ray_client);
    peer_stop(&python);
    if (wanted_broadcast(0) || wanted_broadcast(1))
        measure_broadcast();
    if (wanted(beside_idle))
        measure_idle();
    if (wanted(long_batch))
        measure_batch();
    if (wanted(beside_bulk))
        measure_beside_bulk();
    for (unsigned i = 0; i < WORKERS; i++) {
        kill(workers[i], SIGTERM);
        waitpid(workers[i], NULL, 0);
    }
    kill(host_worker, SIGTERM);
    waitpid(host_worker, NULL, 0);
    server_stop(&server);
    certs_done(&certs);
}

int main(int argc, char **argv)
{
    struct rlimit files;
    int code = options_parse(argc, argv, &options);
    if (code >= 0)
        return code;
    signal(SIGPIPE, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (options.server)
        measure_server();
    else
        measure_all();
    return 0;
}
