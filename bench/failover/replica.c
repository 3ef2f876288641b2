// SPDX-License-Identifier: Apache-2.0
#include "bench/failover/replica.h"

#include "operator/gateway/gateway.h"
#include "operator/local/trust.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "bench: %s: %s\n", what, err->msg);
    _exit(1);
}

static void socket_of(const struct replicas *r, unsigned i, char *out, size_t size)
{
    snprintf(out, size, "unix:%s/%u", r->dir, i);
}

static _Noreturn void serve(const struct replicas *r, unsigned i, int report)
{
    const struct authority authority = trust_authority(REPLICA_TOKEN);
    const struct gateway_config config = {.authority = &authority};
    struct err err = ERR_INIT;
    struct loop *loop = loop_new();
    struct gateway *g = gateway_new(loop, &config, &err);
    char tls[64], plain[128];
    snprintf(tls, sizeof tls, "%s:%d", r->addresses[i], r->port);
    socket_of(r, i, plain, sizeof plain);
    if (!g || gateway_certificate(g, r->certs.server_cert, r->certs.server_key, r->certs.ca, &err) < 0)
        fail("the proxy", &err);
    int port = gateway_listen(g, tls, true, &err);
    if (port < 0 || gateway_listen(g, plain, false, &err) < 0)
        fail("the proxy", &err);
    router_group_set(
        gateway_router(g),
        &(struct group_facts){
            .uid = REPLICA_GROUP, .ns = REPLICA_NS, .name = REPLICA_GROUP, .world = 1, .attempt = 1, .oldest = 1});
    if (write(report, &port, sizeof port) != (ssize_t)sizeof port)
        _exit(1);
    close(report);
    loop_run(loop);
    _exit(1);
}

void replica_start(struct replicas *r, unsigned i)
{
    int report[2];
    if (pipe(report) < 0)
        exit(1);
    r->pids[i] = fork();
    if (r->pids[i] == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(r, i, report[1]);
    }
    close(report[1]);
    if (read(report[0], &r->port, sizeof r->port) != (ssize_t)sizeof r->port)
        exit(1); // it has said why
    close(report[0]);
}

void replica_kill(struct replicas *r, unsigned i)
{
    kill(r->pids[i], SIGKILL);
    waitpid(r->pids[i], NULL, 0);
}

static _Noreturn void be_the_worker(const struct replicas *r, const char *worker, const char *module)
{
    char connect[300], first[128], second[128];
    socket_of(r, 0, first, sizeof first);
    socket_of(r, 1, second, sizeof second);
    snprintf(connect, sizeof connect, "%s,%s", first, second);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("RANK", "0", 1);
    setenv("LOCAL_RANK", "0", 1);
    setenv("WORLD_SIZE", "1", 1);
    setenv("CADRE_ATTEMPT", "1", 1);
    setenv("CADRE_GROUP_UID", REPLICA_GROUP, 1);
    setenv("CADRE_CONNECT", connect, 1);
    if (!freopen("/dev/null", "w", stderr)) // it says each time that it has lost a proxy
        _exit(1);
    execl(worker, worker, "--module", module, (char *)NULL);
    _exit(127);
}

void replicas_start(struct replicas *r, const char *worker, const char *module)
{
    *r = (struct replicas){.dir = "/tmp/bench-failover-XXXXXX"};
    certs_make(&r->certs);
    if (!mkdtemp(r->dir))
        exit(1);
    for (unsigned i = 0; i < REPLICAS; i++) {
        snprintf(r->addresses[i], sizeof r->addresses[i], "127.0.0.%u", i + 2);
        replica_start(r, i);
    }
    r->worker = fork();
    if (r->worker == 0)
        be_the_worker(r, worker, module);
}

void replicas_stop(struct replicas *r)
{
    char path[128];
    kill(r->worker, SIGKILL);
    waitpid(r->worker, NULL, 0);
    for (unsigned i = 0; i < REPLICAS; i++) {
        replica_kill(r, i);
        socket_of(r, i, path, sizeof path);
        unlink(path + strlen("unix:"));
    }
    rmdir(r->dir);
    certs_done(&r->certs);
}
