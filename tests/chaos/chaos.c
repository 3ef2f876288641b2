// SPDX-License-Identifier: Apache-2.0
// chaos WORKER LEDGER_SO: runs for CADRE_CHAOS_SECONDS (60), with the seed CADRE_CHAOS_SEED (default: the clock).
#include "tests/chaos/chaos.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "sdk/c/include/cadre/client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = CHAOS_PROXIES + CHAOS_RANKS + CHAOS_CLIENTS, RUNS_MAX = 4096, HEAL_MS = 300 * 1000 };

enum kind { PROXY, WORKER, CLIENT };
static const char *const kind_names[] = {"proxy", "worker", "client"};

struct child {
    enum kind kind;
    unsigned index, starts;
    pid_t pid;       // 0 = it does not run
    bool stopped;    // by SIGSTOP
    int told;        // the signal that told it to end: SIGTERM, SIGKILL, or 0
    int64_t next_ms; // when it starts, or continues
    unsigned run;    // of a client: its number in `files`
};

struct chaos {
    struct child children[CHILDREN];
    const char *worker, *module;
    char dir[64], ledger[96], sockets[CHAOS_PROXIES][96];
    struct rand rand;
    char *files[RUNS_MAX]; // of clients
    unsigned char killed[RUNS_MAX];
    unsigned n_runs, n_kills, n_terms, n_stops;
    bool wrong;
};

static int64_t now(void)
{
    return clock_mono_ms(&clock_system);
}

static uint64_t below(struct chaos *c, uint64_t n)
{
    return rand_below(&c->rand, n);
}

// Starting

static _Noreturn void exec_worker(const struct chaos *c, const struct child *k)
{
    char rank[16], attempt[16], world[16], init[160], connect[CHAOS_PROXIES * 110] = "";
    for (size_t i = 0; i < CHAOS_PROXIES; i++)
        snprintf(connect + strlen(connect), sizeof connect - strlen(connect), "%sunix:%s", i ? "," : "", c->sockets[i]);
    snprintf(rank, sizeof rank, "%u", k->index);
    snprintf(attempt, sizeof attempt, "%u", k->starts);
    snprintf(world, sizeof world, "%d", CHAOS_RANKS);
    snprintf(init, sizeof init, "{\"file\":\"%s\"}", c->ledger);
    setenv("RANK", rank, 1);
    setenv("LOCAL_RANK", rank, 1);
    setenv("WORLD_SIZE", world, 1);
    setenv("CADRE_ATTEMPT", attempt, 1);
    setenv("CADRE_GROUP_UID", CHAOS_GROUP, 1);
    setenv("CADRE_INIT", init, 1);
    setenv("CADRE_CONNECT", connect, 1);
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (!getenv("CADRE_CHAOS_VERBOSE"))
        dup2(fd, STDERR_FILENO); // it prints each loss of a proxy
    execl(c->worker, c->worker, "--module", c->module, (char *)NULL);
    _exit(127);
}

static _Noreturn void be(struct chaos *c, const struct child *k, uint64_t seed)
{
    const char *sockets[CHAOS_PROXIES];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (k->kind == WORKER)
        exec_worker(c, k);
    for (size_t i = 0; i < CHAOS_PROXIES; i++)
        sockets[i] = c->sockets[i];
    exit(k->kind == PROXY ? proxy_run(c->sockets[k->index]) : client_run(sockets, c->files[k->run], k->run + 1, seed));
}

static void start(struct chaos *c, struct child *k)
{
    k->starts++;
    k->told = 0;
    if (k->kind == CLIENT) {
        k->run = c->n_runs++;
        c->files[k->run] = xasprintf("%s/client-%u", c->dir, k->run);
    }
    uint64_t seed = rand_u64(&c->rand);
    fflush(NULL);
    k->pid = fork();
    if (k->pid == 0)
        be(c, k, seed);
}

// Waits for children that have ended, and checks that each ended as it was told.
static void reap(struct chaos *c)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        struct child *k = c->children;
        while (k->pid != pid)
            k++;
        // A signal that comes before the child has its handler ends the child.
        bool well = k->told == SIGKILL    ? WIFSIGNALED(status)
                    : WIFSIGNALED(status) ? k->told == SIGTERM && WTERMSIG(status) == SIGTERM
                                          : k->told && WEXITSTATUS(status) == 0;
        if (!well) {
            fprintf(stderr, "%s %u has ended with status 0x%x after signal %d\n", kind_names[k->kind], k->index, status,
                    k->told);
            c->wrong = true;
        }
        if (k->kind == CLIENT)
            c->killed[k->run] = k->told == SIGKILL;
        k->pid = 0;
        k->stopped = false;
        k->next_ms = now() + 10 + (int64_t)below(c, 200);
    }
}

static void tell(struct child *k, int signo)
{
    k->told = signo;
    kill(k->pid, signo);
    if (k->stopped)
        kill(k->pid, SIGCONT);
    k->stopped = false;
}

static void harm(struct chaos *c)
{
    struct child *k = &c->children[below(c, CHILDREN)];
    uint64_t dice = below(c, 10);
    if (!k->pid || k->told || k->stopped)
        return;
    if (dice < 5) {
        tell(k, SIGKILL);
        c->n_kills++;
    } else if (dice < 7) {
        tell(k, SIGTERM);
        c->n_terms++;
    } else {
        kill(k->pid, SIGSTOP);
        k->stopped = true;
        k->next_ms = now() + 20 + (int64_t)below(c, 800);
        c->n_stops++;
    }
}

static void heal(struct chaos *c, bool all)
{
    for (struct child *k = c->children; k < c->children + CHILDREN; k++) {
        if ((k->pid && !k->stopped) || (!all && now() < k->next_ms))
            continue;
        if (k->stopped)
            kill(k->pid, SIGCONT);
        else if (c->n_runs < RUNS_MAX)
            start(c, k);
        k->stopped = false;
    }
}

// In the end, every proxy serves the whole group again.
static void check_alive(struct chaos *c, size_t i)
{
    char address[128];
    cadre_client_options o;
    cadre_client_request r;
    cadre_client_error e = {.code = CADRE_CLIENT_IO};
    cadre_client *client;
    snprintf(address, sizeof address, "unix:%s", c->sockets[i]);
    cadre_client_options_init(&o);
    o.address = address;
    o.ns = CHAOS_NS;
    o.group = CHAOS_GROUP;
    cadre_client_request_init(&r, "note");
    r.args = (cadre_client_json){"[0, 0]", 6};
    r.timeout_ms = HEAL_MS;
    r.idempotent = 1;
    r.max_retries = 1000;
    if (cadre_client_open(&o, &client, &e) == CADRE_CLIENT_OK &&
        cadre_client_call(client, &r, NULL, &e) == CADRE_CLIENT_OK)
        e.code = CADRE_CLIENT_OK;
    cadre_client_close(client);
    if (e.code == CADRE_CLIENT_OK)
        return;
    fprintf(stderr, "proxy %zu does not serve the group any more: %s\n", i, e.message);
    c->wrong = true;
}

// Tells all children to end, and waits until they have ended.
static void end_all(struct chaos *c, enum kind kind)
{
    int64_t until = now() + 2 * (int64_t)HEAL_MS;
    size_t left = 1;
    for (struct child *k = c->children; k < c->children + CHILDREN; k++)
        if (k->kind == kind && k->pid && !k->told)
            tell(k, SIGTERM);
    for (; left && now() < until; usleep(10000)) {
        left = 0;
        reap(c);
        for (struct child *k = c->children; k < c->children + CHILDREN; k++)
            left += k->kind == kind && k->pid;
    }
    if (left)
        fprintf(stderr, "%zu of kind %s do not end\n", left, kind_names[kind]);
    c->wrong = c->wrong || left;
}

// Waits until all children run, and none of them is about to end.
static void settle(struct chaos *c)
{
    for (bool all = false; !all && !c->wrong; usleep(10000)) {
        reap(c);
        heal(c, true);
        all = true;
        for (struct child *k = c->children; k < c->children + CHILDREN; k++)
            all = all && k->pid && !k->told;
    }
}

// For a verdict, so much must have happened. A slow machine may need so many times as long.
enum { HARM_MIN = 20, LEDGER_MIN = 32 * 1024, SLOWER = 20 };

static bool enough_happened(const struct chaos *c)
{
    struct stat st;
    return c->n_kills + c->n_terms + c->n_stops >= HARM_MIN && stat(c->ledger, &st) == 0 && st.st_size >= LEDGER_MIN;
}

static void run(struct chaos *c, int64_t seconds)
{
    int64_t began = now(), until = began + seconds * 1000, last = began + SLOWER * seconds * 1000;
    heal(c, true);
    while ((now() < until || (!enough_happened(c) && now() < last)) && !c->wrong) {
        usleep((useconds_t)(5000 + below(c, 300000)));
        reap(c);
        harm(c);
        heal(c, false);
    }
    settle(c);
    for (size_t i = 0; i < CHAOS_PROXIES && !c->wrong; i++)
        check_alive(c, i);
    end_all(c, CLIENT);
    end_all(c, WORKER);
    end_all(c, PROXY);
}

static void set_up(struct chaos *c)
{
    struct child *k = c->children;
    snprintf(c->dir, sizeof c->dir, "/tmp/cadre-chaos-XXXXXX");
    if (!mkdtemp(c->dir)) {
        perror(c->dir);
        exit(1);
    }
    snprintf(c->ledger, sizeof c->ledger, "%s/ledger", c->dir);
    for (unsigned i = 0; i < CHAOS_PROXIES; i++, k++) {
        snprintf(c->sockets[i], sizeof c->sockets[i], "%s/proxy-%u", c->dir, i);
        *k = (struct child){.kind = PROXY, .index = i};
    }
    for (unsigned i = 0; i < CHAOS_RANKS; i++, k++)
        *k = (struct child){.kind = WORKER, .index = i};
    for (unsigned i = 0; i < CHAOS_CLIENTS; i++, k++)
        *k = (struct child){.kind = CLIENT, .index = i};
}

static void clean_up(struct chaos *c)
{
    for (unsigned i = 0; i < c->n_runs; i++) {
        unlink(c->files[i]);
        free(c->files[i]);
    }
    for (size_t i = 0; i < CHAOS_PROXIES; i++)
        unlink(c->sockets[i]);
    unlink(c->ledger);
    rmdir(c->dir);
}

static int64_t number_in(const char *variable, int64_t fallback)
{
    const char *text = getenv(variable);
    int64_t n;
    return !str_empty(text) && str_to_i64(text, &n) ? n : fallback;
}

int main(int argc, char **argv)
{
    static struct chaos c;
    int64_t seed = number_in("CADRE_CHAOS_SEED", now() % 1000000);
    if (argc != 3) {
        fprintf(stderr, "usage: chaos CADRE_WORKER LEDGER_SO\n");
        return 64;
    }
    c.worker = argv[1];
    c.module = argv[2];
    rand_seed(&c.rand, (uint64_t)seed);
    set_up(&c);
    printf("seed %" PRId64 "\n", seed);
    run(&c, number_in("CADRE_CHAOS_SECONDS", 60));
    printf("%u killed, %u told to end, %u stopped for a while\n", c.n_kills, c.n_terms, c.n_stops);
    bool wrong = verdict(c.ledger, c.files, c.killed, c.n_runs) || c.wrong;
    if (wrong)
        fprintf(stderr, "not ok: CADRE_CHAOS_SEED=%" PRId64 ", see %s\n", seed, c.dir);
    else
        clean_up(&c);
    return wrong;
}
