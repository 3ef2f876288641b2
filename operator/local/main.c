// SPDX-License-Identifier: Apache-2.0
// cadre-local: a gateway with one group that never changes, and `cadre-agent run`, which starts its processes.
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "common/ws/rundir.h"
#include "operator/gateway/gateway.h"
#include "operator/gateway/target.h"
#include "operator/local/manifest.h"
#include "operator/local/options.h"
#include "operator/local/reins.h"
#include "operator/local/restart.h"
#include "operator/local/tee.h"
#include "operator/local/trust.h"
#include "operator/meshes.h"
#include "operator/proxy/kill.h"
#include "operator/proxy/object.h"
#include "operator/proxy/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

enum { FIRST_ATTEMPT = 1, LEAVING_MS = 10, LEAVING_MAX = 100 };

struct exit_note { // the first process of an attempt that failed, the others were ended for it
    uint32_t attempt, rank;
    int code; // 0 = none is known
};

struct local {
    struct options options;
    struct manifest manifest;
    struct loop *loop;
    struct gateway *gateway;
    struct tee *tee;
    struct reins *reins;
    struct loop_signal *signals[3];
    struct loop_timer *again, *leaving;
    struct restarts restarts;
    uint32_t attempt;
    struct exit_note failed;
    char *refusal;                     // of calls, once the processes have ended for good
    bool served;                       // a process has connected, so there may be callers, and more may come
    int n_leaving;                     // how often the last answers were waited for
    char url[256];                     // for the workers
    char token[TRUST_TOKEN_SIZE];      // of a port
    char token_file[RUNDIR_PATH_SIZE]; // "" = none was written
    struct authority authority;
    char uid[32]; // of the group in this run
    pid_t agent;  // 0 = has ended
    bool asked;   // to stop
    int exit_code;
};

static void describe(struct local *l, struct group_facts *ret)
{
    *ret = (struct group_facts){.uid = l->uid,
                                .ns = l->options.ns,
                                .name = l->options.group,
                                .world = (uint32_t)l->options.processes,
                                .attempt = l->attempt,
                                .oldest = l->attempt,
                                .refusal = l->refusal};
    if (!l->manifest.group)
        return;
    ret->meshes = meshes_of(&l->manifest.group->spec.worker, &l->manifest.arena);
    ret->n_meshes = l->manifest.group->spec.worker.n_meshes;
}

static void tell_router(struct local *l)
{
    struct group_facts facts;
    describe(l, &facts);
    router_group_set(gateway_router(l->gateway), &facts);
}

static void on_worker(void *ctx, const char *group_uid)
{
    struct local *l = ctx;
    (void)group_uid;
    l->served = true;
}

// The agent

static _Noreturn void run_agent(const struct local *l, int control)
{
    char processes[16], attempt[16], fd[16];
    size_t n = 0;
    while (l->options.command[n])
        n++;
    snprintf(processes, sizeof processes, "%d", l->options.processes);
    snprintf(attempt, sizeof attempt, "%u", (unsigned)l->attempt);
    snprintf(fd, sizeof fd, "%d", control);
    fcntl(control, F_SETFD, 0);
    const char *first[] = {l->options.agent, "run", "--processes", processes, "--attempt", attempt,
                           "--control",      fd,    "--"};
    const char **argv = xcalloc(ARRAY_LEN(first) + n + 1, sizeof *argv);
    memcpy(argv, first, sizeof first);
    memcpy(argv + ARRAY_LEN(first), l->options.command, n * sizeof *argv);
    setenv("CADRE_CONNECT", l->url, 1);
    setenv("CADRE_GROUP_UID", l->uid, 1);
    setenv("GROUP_NAME", l->options.group, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM); // nobody else would end it
    setpgid(0, 0);                    // Ctrl-C is for us, who tell it once
    signal(SIGPIPE, SIG_DFL);
    for (const char **e = l->manifest.environment; e && *e; e++)
        putenv((char *)*e);
    if (l->manifest.working_dir && chdir(l->manifest.working_dir) != 0) {
        fprintf(stderr, "cadre-local: cannot enter workingDir %s: %s\n", l->manifest.working_dir, strerror(errno));
        _exit(EX_UNAVAILABLE);
    }
    execvp(argv[0], (char **)argv);
    fprintf(stderr, "cadre-local: cannot run %s: %s; name it with --agent\n", argv[0], strerror(errno));
    _exit(127);
}

static void on_line(void *ctx, uint32_t rank, const char *text, size_t len)
{
    struct local *l = ctx;
    output_line(gateway_router(l->gateway), l->uid, rank, text, len);
}

static void on_exited(void *ctx, uint32_t attempt, uint32_t rank, int exit_code)
{
    struct local *l = ctx;
    if (exit_code && l->failed.attempt != attempt)
        l->failed = (struct exit_note){attempt, rank, exit_code};
    router_worker_exited(gateway_router(l->gateway), l->uid, attempt, rank, exit_code);
}

static void on_kill_refused(void *ctx, uint32_t rank, const char *why)
{
    const struct local *l = ctx;
    router_kill_refused(gateway_router(l->gateway), l->uid, rank, why);
}

static int kill_rank(void *ctx, const char *group_uid, uint32_t attempt, uint32_t rank, struct err *err)
{
    const struct local *l = ctx;
    return reins_kill(l->reins, group_uid, attempt, rank, err);
}

static void start_agent(struct local *l)
{
    int fds[3] = {-1, -1, -1};
    struct err err = ERR_INIT;
    bool open = tee_open(l->tee, fds, &err) == 0 && reins_open(l->reins, &fds[2], &err) == 0;
    pid_t pid = open ? fork() : -1;
    if (pid == 0) {
        dup2(fds[0], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        run_agent(l, fds[2]);
    }
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    l->agent = MAX(pid, 0);
    if (pid < 0) {
        fprintf(stderr, "cadre-local: cannot start the agent: %s\n", err.code ? err.msg : strerror(errno));
        l->exit_code = EX_OSERR;
    }
}

static void on_again(void *ctx)
{
    struct local *l = ctx;
    l->attempt++;
    tell_router(l);
    start_agent(l);
    if (!l->agent)
        loop_stop(l->loop);
}

// Whether the processes are started again, which it says. *ret_why: why not, where they have failed.
static bool goes_on(struct local *l, const char **ret_why)
{
    *ret_why = "there are no restarts without a manifest";
    if (l->asked || !l->manifest.group)
        return false;
    int64_t ms = restart_after(&l->restarts, &l->manifest.group->spec, l->exit_code, ret_why);
    if (ms < 0)
        return false;
    fprintf(stderr, "cadre-local: failed with exit code %d; restart %d in %.1f s\n", l->exit_code, l->restarts.tries,
            (double)ms / 1000);
    loop_timer_arm(l->again, ms);
    return true;
}

// The end

static void on_leaving(void *ctx)
{
    struct local *l = ctx;
    if (gateway_idle(l->gateway) || l->n_leaving++ == LEAVING_MAX)
        loop_stop(l->loop);
    else
        loop_timer_arm(l->leaving, LEAVING_MS);
}

// Calls that wait are answered before the socket goes.
static void leave(struct local *l)
{
    loop_timer_disarm(l->again);
    gateway_stop(l->gateway);
    loop_timer_arm(l->leaving, 0);
}

static char *describe_end(const struct local *l, const char *why)
{
    if (l->asked)
        return xstrdup("its run on this machine was told to end");
    if (l->exit_code == 0)
        return xstrdup("all of its processes have ended with success");
    if (l->failed.attempt == l->attempt)
        return xasprintf("it has failed: rank %u exited with code %d; no restart: %s", l->failed.rank, l->failed.code,
                         why);
    return xasprintf("it has failed with exit code %d; no restart: %s", l->exit_code, why);
}

// Whoever calls later is told why, if there may be such; a job that nobody calls just ends.
static void end_group(struct local *l, const char *why)
{
    l->refusal = describe_end(l, why);
    tell_router(l);
    if (!l->asked && (l->exit_code || l->served))
        fprintf(stderr, "cadre-local: %s: %s\n", l->options.group, l->refusal);
    if (l->asked || !l->served)
        leave(l);
    else
        fprintf(stderr, "cadre-local: calls are refused from now on; Ctrl-C ends the run\n");
}

static void on_child(void *ctx, int signo)
{
    struct local *l = ctx;
    int status;
    (void)signo;
    if (!l->agent || waitpid(l->agent, &status, WNOHANG) != l->agent)
        return;
    l->agent = 0;
    tee_drain(l->tee);
    reins_drain(l->reins);
    l->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (l->asked && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM)
        l->exit_code = 0;
    const char *why;
    if (!goes_on(l, &why))
        end_group(l, why);
}

static void on_stop(void *ctx, int signo)
{
    struct local *l = ctx;
    (void)signo;
    l->asked = true;
    if (l->agent)
        kill(l->agent, SIGTERM);
    else if (loop_timer_armed(l->leaving)) // told twice
        loop_stop(l->loop);
    else
        leave(l);
}

static int write_token(struct local *l, struct err *err)
{
    int r = rundir_token(l->options.ns, l->options.group, l->token_file, err);
    if (r < 0)
        return r;
    unlink(l->token_file); // of a run that had no time to
    int fd = open(l->token_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    ssize_t n = fd < 0 ? -1 : write(fd, l->token, strlen(l->token));
    if (n != (ssize_t)strlen(l->token))
        r = err_set(err, ERR_UNAVAILABLE, "cannot write the token to %s: %s", l->token_file, strerror(errno));
    if (fd >= 0)
        close(fd);
    return r;
}

// Any program of this machine can reach it, and so can a web site in its user's browser.
static int listen_port(struct local *l, const char *address, struct err *err)
{
    if (!trust_draw(l->token))
        return err_set(err, ERR_UNAVAILABLE, "the kernel has no random bytes for a token");
    int port = gateway_listen(l->gateway, address, false, err);
    int r = port < 0 ? port : write_token(l, err);
    if (r == 0)
        fprintf(stderr,
                "cadre-local: taking calls at ws://%.*s:%d, path /v1/namespaces/%s/workergroups/%s, with the token in "
                "%s\n",
                (int)(strrchr(address, ':') - address), address, port, l->options.ns, l->options.group, l->token_file);
    return r;
}

// The processes of the run are on a Unix socket in any case: there nobody else gets to.
static int listen_here(struct local *l, struct err *err)
{
    const char *address = l->options.listen;
    char path[RUNDIR_PATH_SIZE];
    int r = address && !str_starts(address, "unix:") ? listen_port(l, address, err) : 0;
    if (r == 0 && (!address || l->token[0]))
        r = rundir_socket(l->options.ns, l->options.group, path, err);
    if (r < 0)
        return r;
    if (!address || l->token[0])
        snprintf(l->url, sizeof l->url, "unix:%s", path);
    else
        snprintf(l->url, sizeof l->url, "%s", address);
    r = gateway_listen(l->gateway, l->url, false, err);
    if (r == 0)
        fprintf(stderr, "cadre-local: taking calls at %s, path /v1/namespaces/%s/workergroups/%s\n", l->url,
                l->options.ns, l->options.group);
    return r;
}

static int start(struct local *l, struct err *err)
{
    const struct gateway_config config = {.authority = &l->authority,
                                          .share = !l->options.plain,
                                          .sleeps = l->options.sleeps,
                                          .kill = kill_rank,
                                          .worker = on_worker,
                                          .ctx = l};
    const struct reins_events events = {on_exited, on_kill_refused, l};
    l->authority = trust_authority(l->token);
    l->gateway = gateway_new(l->loop, &config, err);
    if (!l->gateway)
        return err->code;
    tell_router(l);
    l->tee = tee_new(l->loop, on_line, l);
    l->reins = reins_new(l->loop, &events);
    l->again = loop_timer_new(l->loop, on_again, l);
    l->leaving = loop_timer_new(l->loop, on_leaving, l);
    l->signals[0] = loop_signal_new(l->loop, SIGTERM, on_stop, l);
    l->signals[1] = loop_signal_new(l->loop, SIGINT, on_stop, l);
    l->signals[2] = loop_signal_new(l->loop, SIGCHLD, on_child, l);
    return listen_here(l, err);
}

// What callers ask for has to lead here; and the names are part of that of the socket.
static int check_path(const struct options *o, struct err *err)
{
    struct err ignored = ERR_INIT;
    struct target target;
    _cleanup_(free_p) char *path = xasprintf("/v1/namespaces/%s/workergroups/%s", o->ns, o->group);
    if (target_parse(path, &target, &ignored) == 0 && str_eq(target.group, o->group) && str_eq(target.ns, o->ns))
        return 0;
    return err_set(err, ERR_INVALID,
                   "the group %.100s of the namespace %.100s: names have 1 to 63 characters of a to z, 0 to 9 and -, "
                   "which is neither the first nor the last",
                   o->group, o->ns);
}

// What the manifest says, where the command line does not.
static int use_manifest(struct local *l, struct err *err)
{
    struct options *o = &l->options;
    if (o->file) {
        int r = manifest_read(o->file, o->group, o->map, &l->manifest, err);
        if (r < 0)
            return r;
        const struct meta *m = &l->manifest.group->obj.meta;
        o->group = m->name;
        o->ns = o->ns ? o->ns : m->ns && *m->ns ? m->ns : NULL;
        o->processes = l->manifest.processes;
        o->command = (char **)l->manifest.command;
    }
    o->group = o->group ? o->group : "local";
    o->ns = o->ns ? o->ns : "default";
    return check_path(o, err);
}

int main(int argc, char **argv)
{
    struct local l = {.attempt = FIRST_ATTEMPT};
    struct rand rand;
    struct err err = ERR_INIT;
    int code = options_parse(argc, argv, &l.options);
    if (code >= 0)
        return code;
    if (use_manifest(&l, &err) < 0) {
        fprintf(stderr, "cadre-local: %s\n", err.msg);
        manifest_done(&l.manifest);
        return EX_DATAERR;
    }
    log_setup(LOG_INFO, LOG_TEXT);
    signal(SIGPIPE, SIG_IGN);
    rand_seed_system(&rand);
    l.restarts.seed = rand_u64(&rand);
    snprintf(l.uid, sizeof l.uid, OBJECT_LOCAL_UID "%016" PRIx64, rand_u64(&rand));
    l.loop = loop_new();
    if (start(&l, &err) < 0) {
        fprintf(stderr, "cadre-local: %s\n", err.msg);
        l.exit_code = EX_UNAVAILABLE;
    } else {
        start_agent(&l);
        if (l.agent)
            loop_run(l.loop);
    }
    tee_free(l.tee);
    reins_free(l.reins);
    gateway_free(l.gateway);
    if (l.token_file[0])
        unlink(l.token_file);
    loop_timer_free(l.again);
    loop_timer_free(l.leaving);
    free(l.refusal);
    for (size_t i = 0; i < ARRAY_LEN(l.signals); i++)
        loop_signal_free(l.signals[i]);
    loop_free(l.loop);
    manifest_done(&l.manifest);
    return l.exit_code;
}
