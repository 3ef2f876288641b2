// SPDX-License-Identifier: Apache-2.0
#include "operator/local/local_group.h"

#include "common/base/child.h"
#include "common/base/file.h"
#include "common/base/last_line.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "operator/local/agent_control.h"
#include "operator/proxy/kill.h"
#include "operator/proxy/output.h"
#include "operator/proxy/reference.h"
#include "operator/wiring/meshes.h"
#include "worker/agent/rank_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

enum { FIRST_ATTEMPT = 1, FIRST_WORDS = 13 };

static void tell_router(struct local_group *g)
{
    struct group_facts facts = {.uid = g->uid,
                                .ns = g->ns,
                                .name = g->name,
                                .world = (uint32_t)g->manifest.processes,
                                .attempt = g->attempt,
                                .oldest = g->attempt,
                                .refusal = g->refusal,
                                .status = g->status};
    if (g->manifest.group) {
        facts.meshes = meshes_of(&g->manifest.group->spec.worker, &g->manifest.arena);
        facts.n_meshes = g->manifest.group->spec.worker.n_meshes;
    }
    router_group_set(gateway_router(g->run.gateway), &facts);
}

// The agent

static void enter(const struct local_group *g)
{
    setenv("CADRE_CONNECT", g->run.url, 1);
    setenv("CADRE_GROUP_UID", g->uid, 1);
    setenv("GROUP_NAME", g->name, 1);
    setenv("CADRE_NAMESPACE", g->ns, 1);
    if (g->gpus.list)
        setenv("CUDA_VISIBLE_DEVICES", g->gpus.list, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM); // if we end, nobody else ends it
    setpgid(0, 0);                    // Ctrl-C reaches only us, and we tell it once
    for (const char **e = g->manifest.environment; e && *e; e++)
        putenv((char *)*e);
    if (g->manifest.working_dir && chdir(g->manifest.working_dir) != 0) {
        fprintf(stderr, "cadre-local: cannot enter workingDir %s: %s\n", g->manifest.working_dir, strerror(errno));
        _exit(EX_UNAVAILABLE);
    }
}

// Ranks may have another PATH and another folder, so the agent is looked for before they are set. If it is not found,
// execvp() says why.
static void find_agent(const char *name, char ret[PATH_MAX])
{
    char candidate[PATH_MAX];
    bool is_path = strchr(name, '/');
    if (is_path && realpath(name, ret))
        return;
    for (const char *p = is_path ? NULL : getenv("PATH"), *end; p; p = *end ? end + 1 : NULL) {
        end = strchrnul(p, ':');
        int n = snprintf(candidate, sizeof candidate, "%.*s/%s", end > p ? (int)(end - p) : 1, end > p ? p : ".", name);
        if (n < (int)sizeof candidate && access(candidate, X_OK) == 0 && realpath(candidate, ret))
            return;
    }
    snprintf(ret, PATH_MAX, "%s", name);
}

static _Noreturn void run_agent(const struct local_group *g, int control)
{
    char agent[PATH_MAX], processes[16], attempt[16], fd[16];
    size_t n = 0, k = 0;
    while (g->manifest.command[n])
        n++;
    find_agent(g->run.agent, agent);
    snprintf(processes, sizeof processes, "%d", g->manifest.processes);
    snprintf(attempt, sizeof attempt, "%u", (unsigned)g->attempt);
    snprintf(fd, sizeof fd, "%d", control);
    fcntl(control, F_SETFD, 0);
    const char *first[FIRST_WORDS];
    const char *const always[] = {agent, "run", "--processes", processes, "--attempt", attempt, "--control", fd};
    for (; k < ARRAY_LEN(always); k++)
        first[k] = always[k];
    if (g->gpus.list) {
        first[k++] = "--gpu-visibility";
        first[k++] = g->gpus.own ? "own" : "all";
        first[k++] = "--process-gpus";
        first[k++] = g->gpus.of_processes;
    }
    first[k++] = "--";
    const char **argv = xcalloc(k + n + 1, sizeof *argv);
    memcpy(argv, first, k * sizeof *argv);
    memcpy(argv + k, g->manifest.command, n * sizeof *argv);
    enter(g);
    execvp(argv[0], (char **)argv);
    fprintf(stderr, "cadre-local: cannot run %s: %s; set its path with --agent\n", argv[0], strerror(errno));
    _exit(127);
}

// Lines of ranks, such as "[rank 3] text", also go to clients that listen to the group.
static void on_line(void *ctx, const char *text, size_t len)
{
    static const char prefix[] = "[rank ";
    struct local_group *g = ctx;
    const char *p = text + sizeof prefix - 1, *end = text + len;
    uint32_t rank = 0;
    if (len < sizeof prefix || memcmp(text, prefix, sizeof prefix - 1) != 0)
        return;
    for (; p < end && *p >= '0' && *p <= '9' && rank < 100000000; p++)
        rank = rank * 10 + (uint32_t)(*p - '0');
    if (end - p >= 2 && p[0] == ']' && p[1] == ' ')
        output_line(gateway_router(g->run.gateway), g->uid, rank, p + 2, (size_t)(end - p) - 2);
}

static int open_output(struct local_group *g, int ret_fds[2], struct err *err)
{
    rank_output_close(TAKE_PTR(g->printed));
    g->printed = rank_output_open(g->output, g->prefix, ret_fds, err);
    if (!g->printed)
        return err->code;
    rank_output_follow(g->printed, on_line, g);
    return 0;
}

static void note_failure(struct local_group *g, uint32_t attempt, uint32_t rank, int code, const char *last_lines)
{
    struct arena a = ARENA_INIT;
    const char *line = last_line(last_lines, &a);
    free(g->failed.words);
    g->failed = (struct exit_note){attempt, rank, code, line[0] ? xstrdup(line) : NULL};
    arena_done(&a);
}

static void on_exited(void *ctx, uint32_t attempt, uint32_t rank, int exit_code, const char *last_lines)
{
    struct local_group *g = ctx;
    if (exit_code && g->failed.attempt != attempt)
        note_failure(g, attempt, rank, exit_code, last_lines);
    router_worker_exited(gateway_router(g->run.gateway), g->uid, attempt, rank, exit_code, last_lines);
}

static void on_stopped(void *ctx, uint32_t attempt);

static void on_kill_refused(void *ctx, uint32_t rank, const char *why)
{
    const struct local_group *g = ctx;
    router_kill_refused(gateway_router(g->run.gateway), g->uid, rank, why);
}

static int start_agent(struct local_group *g, struct err *err)
{
    int fds[3] = {-1, -1, -1};
    bool open = open_output(g, fds, err) == 0 && agent_control_open(g->control, &fds[2], err) == 0;
    pid_t pid = open ? child_fork() : -1;
    if (pid == 0) {
        dup2(fds[0], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        run_agent(g, fds[2]);
    }
    if (pid < 0 && open)
        err_set(err, ERR_UNAVAILABLE, "cannot fork: %s", strerror(errno));
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        file_close(&fds[i]);
    g->agent = MAX(pid, 0);
    g->changed = false;
    if (pid < 0)
        g->exit_code = EX_OSERR;
    return pid < 0 ? err_wrap(err, "cannot start the agent") : 0;
}

// The end

// `python3 -m cadre.worker` ends with code 1 before it connects only if python3 has no such package. Its own errors
// have other codes. In a cluster, an init container installs the package.
static const char *hint(const struct local_group *g)
{
    bool missing = g->exit_code == 1 && !g->served && g->manifest.group && g->manifest.group->spec.worker.python;
    return missing
               ? " (if python3 in PATH has no package cadre: install the wheel cadre-sdk into it; or set PYTHONPATH to "
                 "sdk/python of the source tree and CADRE_CLIENT_LIBRARY to libcadre.so of a release build)"
               : "";
}

static char *describe_end(const struct local_group *g, const char *why)
{
    if (g->exit_code == 0)
        return xstrdup("all of its processes have succeeded");
    if (g->failed.attempt == g->attempt)
        return xasprintf("it failed: rank %u exited with code %d%s%s%s; it is not restarted: %s", g->failed.rank,
                         g->failed.code, g->failed.words ? ": " : "", g->failed.words ? g->failed.words : "", hint(g),
                         why);
    return xasprintf("it failed with exit code %d%s; it is not restarted: %s", g->exit_code, hint(g), why);
}

// If there may be clients, later calls are refused with the reason. A job that nobody calls just ends.
static void end(struct local_group *g, const char *why)
{
    if (!g->asked) {
        free(g->refusal);
        g->refusal = describe_end(g, why);
        tell_router(g);
    }
    if (!g->asked && (g->exit_code || g->served))
        fprintf(stderr, "cadre-local: %s: %s\n", g->name, g->refusal);
    g->run.ended(g->run.ctx, g);
}

// Returns true if the processes are started again, and prints that. If they have failed for good, *ret_why is the
// reason.
static bool goes_on(struct local_group *g, const char **ret_why)
{
    *ret_why = "there are no restarts without a manifest";
    if (g->asked || !g->manifest.group)
        return false;
    int64_t ms = restart_after(&g->restarts, &g->manifest.group->spec, g->exit_code, ret_why);
    if (ms < 0)
        return false;
    fprintf(stderr, "cadre-local: %s: failed with exit code %d%s; restart %d in %.1f s\n", g->name, g->exit_code,
            hint(g), g->restarts.tries, (double)ms / 1000);
    loop_timer_arm(g->again, ms);
    return true;
}

// An agent that cannot be started counts as one that has failed.
static void start_next_agent(struct local_group *g)
{
    struct err err = ERR_INIT;
    if (start_agent(g, &err) < 0 && !goes_on(g, &g->why))
        end(g, err.msg);
}

// The present agent stops the old processes and starts new ones. If that is not possible, a new agent starts them.
static void next_attempt(struct local_group *g)
{
    struct err err = ERR_INIT;
    g->attempt++;
    tell_router(g);
    if (!g->agent) {
        start_next_agent(g);
    } else if (g->over || g->changed || agent_control_prepare(g->control, g->uid, g->attempt, &err) < 0) {
        g->new_agent = true;
        kill(g->agent, SIGTERM);
    }
}

static void on_again(void *ctx)
{
    next_attempt(ctx);
}

static void on_stopped(void *ctx, uint32_t attempt)
{
    struct local_group *g = ctx;
    struct err err = ERR_INIT;
    if (attempt != g->attempt || g->asked || g->over || !g->agent) // an agent that has ended reports more
        return;
    rank_output_drain(g->printed);
    g->exit_code = g->failed.attempt == attempt ? g->failed.code : 0;
    g->over = !goes_on(g, &g->why);
    if (g->over && agent_control_end(g->control, g->uid, attempt, &err) < 0)
        kill(g->agent, SIGTERM);
}

void local_group_reap(struct local_group *g)
{
    int status;
    if (!g->agent || waitpid(g->agent, &status, WNOHANG) != g->agent)
        return;
    g->agent = 0;
    rank_output_drain(g->printed);
    agent_control_drain(g->control);
    g->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (g->asked && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM)
        g->exit_code = 0;
    if (g->new_agent && !g->asked) {
        g->new_agent = g->over = false;
        start_next_agent(g);
    } else if (g->over || (!loop_timer_armed(g->again) && !goes_on(g, &g->why))) {
        end(g, g->why);
    }
}

// The places of its ranks stay, so their numbers stay, too.
int local_group_change(struct local_group *g, const struct manifest *manifest, struct err *err)
{
    const struct workergroup_spec *now = &g->manifest.group->spec, *next = &manifest->group->spec;
    if (next->replicas != now->replicas || next->workers_per_replica != now->workers_per_replica)
        return err_set(err, ERR_INVALID, "%s has %d replicas of %d ranks, and a restart does not make them %d of %d",
                       g->name, now->replicas, now->workers_per_replica, next->replicas, next->workers_per_replica);
    manifest_done(&g->manifest);
    g->manifest = *manifest;
    g->changed = true;
    return 0;
}

bool local_group_restart(struct local_group *g)
{
    if (g->new_agent) // a new agent follows already
        return true;
    loop_timer_disarm(g->again);
    free(TAKE_PTR(g->refusal));
    g->restarts = (struct restarts){.seed = g->restarts.seed};
    if (g->agent) {
        next_attempt(g);
        return true;
    }
    g->over = false;
    g->attempt++;
    tell_router(g);
    return false;
}

bool local_group_stop(struct local_group *g, const char *why)
{
    g->asked = true;
    loop_timer_disarm(g->again);
    if (!g->refusal) {
        g->refusal = xstrdup(why);
        tell_router(g);
    }
    if (g->agent)
        kill(g->agent, SIGTERM);
    return g->agent != 0;
}

// Begin and end

struct local_group *local_group_new(const struct local_run *run, const char *ns, const char *name,
                                    const struct manifest *manifest)
{
    struct local_group *g = xcalloc(1, sizeof *g);
    struct rand rand;
    *g = (struct local_group){.run = *run,
                              .manifest = *manifest,
                              .ns = xstrdup(ns),
                              .name = xstrdup(name),
                              .prefix = run->several ? xasprintf("%s ", name) : xstrdup(""),
                              .attempt = FIRST_ATTEMPT};
    rand_seed_system(&rand);
    g->restarts.seed = rand_u64(&rand);
    snprintf(g->uid, sizeof g->uid, REFERENCE_LOCAL_UID "%016" PRIx64, rand_u64(&rand));
    const struct agent_control_events events = {on_exited, on_stopped, on_kill_refused, g};
    g->output = rank_output_new(run->loop, STDOUT_FILENO, STDERR_FILENO);
    g->control = agent_control_new(run->loop, &events);
    g->again = loop_timer_new(run->loop, on_again, g);
    tell_router(g);
    return g;
}

static void set_gpus(struct local_group *g, const struct claimed_gpus *gpus)
{
    free((char *)g->gpus.list);
    free((char *)g->gpus.of_processes);
    g->gpus = (struct claimed_gpus){0};
    if (gpus && gpus->list)
        g->gpus = (struct claimed_gpus){xstrdup(gpus->list), xstrdup(gpus->of_processes), gpus->own};
}

void local_group_free(struct local_group *g)
{
    if (!g)
        return;
    if (g->agent)
        kill(g->agent, SIGTERM);
    rank_output_close(g->printed);
    rank_output_free(g->output);
    agent_control_free(g->control);
    loop_timer_free(g->again);
    manifest_done(&g->manifest);
    free(g->failed.words);
    free(g->refusal);
    free(g->status);
    set_gpus(g, NULL);
    free(g->ns);
    free(g->name);
    free(g->prefix);
    free(g);
}

int local_group_start(struct local_group *g, const struct claimed_gpus *gpus, struct err *err)
{
    set_gpus(g, gpus);
    if (g->status) {
        free(TAKE_PTR(g->status));
        tell_router(g);
    }
    return start_agent(g, err);
}

void local_group_waits(struct local_group *g, const char *why)
{
    if (str_eq(g->status, why))
        return;
    free(g->status);
    g->status = xstrdup(why);
    tell_router(g);
}

int local_group_kill(struct local_group *g, uint32_t attempt, uint32_t rank, struct err *err)
{
    return agent_control_kill(g->control, g->uid, attempt, rank, err);
}
