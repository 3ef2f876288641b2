// SPDX-License-Identifier: Apache-2.0
// The CPU time that the longest turn of the proxy's loop takes during each attack of tests/attack, without a cluster:
// the proxy, a worker and the attacker are processes on loopback. run.sh builds and starts it.
#include "bench/calls/server.h"
#include "bench/lib/proc.h"
#include "common/base/log.h"
#include "common/base/mem.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct certs certs;
static struct server server;

struct files {
    char ca[64], token[64];
};

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
        fprintf(stderr, "bench: cannot write %s\n", path);
        exit(1);
    }
}

static pid_t start_worker(const char *program, const char *module)
{
    char ticket[SERVER_TICKET_SIZE], url[64];
    server_ticket(ticket, "echo", 0);
    snprintf(url, sizeof url, "ws://127.0.0.1:%d", server.port);
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("RANK", "0", 1);
    setenv("WORLD_SIZE", "1", 1);
    setenv("CADRE_TICKET", ticket, 1);
    setenv("CADRE_GROUP_UID", "echo", 1);
    setenv("CADRE_ATTEMPT", "1", 1);
    if (!freopen("/dev/null", "w", stderr))
        _exit(1);
    execl(program, program, "--module", module, "--connect", url, (char *)NULL);
    _exit(127);
}

// `what`: the name of an attack, or NAME*SCALE. Returns whether it was carried out.
static bool attack(const char *script, const char *seconds, const char *what, const struct files *f)
{
    char port[16], name[32];
    int status;
    const char *star = strchr(what, '*');
    snprintf(name, sizeof name, "%.*s", (int)strcspn(what, "*"), what);
    snprintf(port, sizeof port, "%d", server.tls_port);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!freopen("/dev/null", "w", stdout))
            _exit(1);
        execlp("python3", "python3", script, "--host", "127.0.0.1", "--port", port, "--ca", f->ca, "--token", f->token,
               "--namespace", SERVER_NS, "--seconds", seconds, "--scale", star ? star + 1 : "1", name, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return status == 0;
}

static void measure(const char *script, const char *seconds, const char *name, const struct files *f)
{
    struct server_turns *t = server.turns;
    t->n = t->over_2_ms = t->slow = 0;
    t->longest_cpu_us = t->longest_us = 0;
    double before = proc_cpu_s(server.pid);
    if (!attack(script, seconds, name, f))
        printf("| %s | it was not carried out | | | | | |\n", name);
    else
        printf("| %s | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %.1f | %.1f | %.1f |\n", name, t->n, t->over_2_ms,
               t->slow, (double)t->longest_cpu_us / 1000, (double)t->longest_us / 1000,
               proc_cpu_s(server.pid) - before);
}

struct machine { // CPU time of all cores so far, in ticks
    double all, stolen;
};

static struct machine machine(void)
{
    struct machine m = {0};
    double t[8] = {0}; // user, nice, system, idle, iowait, irq, softirq, steal
    FILE *f = fopen("/proc/stat", "re");
    int n = f ? fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7])
              : 0;
    if (f)
        fclose(f);
    for (int i = 0; i < n; i++)
        m.all += t[i];
    m.stolen = t[7];
    return m;
}

int main(int argc, char **argv)
{
    static const struct server_group groups[] = {{"echo", 1}, {"waits", 1}, {"huge", 640000}};
    char folder[] = "/tmp/bench-turns-XXXXXX";
    struct files f;
    struct rlimit files;
    if (argc < 6 || !mkdtemp(folder)) {
        fputs("Usage: bench-turns CADRE-WORKER ECHO.SO ATTACK.PY SECONDS ATTACK...\n", stderr);
        return 1;
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    log_setup(LOG_ERROR, LOG_TEXT); // it refuses much
    certs_make(&certs);
    server.turns = server_turns_new();
    server_start(&server, &certs, groups, ARRAY_LEN(groups));
    snprintf(f.ca, sizeof f.ca, "%s/ca", folder);
    snprintf(f.token, sizeof f.token, "%s/token", folder);
    write_file(f.ca, certs.ca);
    write_file(f.token, "token");
    pid_t worker = start_worker(argv[1], argv[2]);
    puts("| attack | turns | over 2 ms | of these, while the machine was slow | longest of the others, ms of CPU "
         "| longest, ms | CPU, s |\n|---|---:|---:|---:|---:|---:|---:|");
    struct machine before = machine();
    for (int i = 5; i < argc; i++)
        measure(argv[3], argv[4], argv[i], &f);
    struct machine after = machine();
    printf("\nload %.1f; other machines of the host took %.1f %% of the CPU time meanwhile\n", proc_load(),
           100 * (after.stolen - before.stolen) / MAX(after.all - before.all, 1.0));
    kill(worker, SIGTERM);
    waitpid(worker, NULL, 0);
    server_stop(&server);
    unlink(f.ca);
    unlink(f.token);
    rmdir(folder);
    certs_done(&certs);
    return 0;
}
