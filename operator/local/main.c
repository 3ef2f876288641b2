// SPDX-License-Identifier: Apache-2.0
// cadre-local: a gateway with one group, or with groups that clients create. `cadre-agent run` starts their processes.
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/ws/rundir.h"
#include "operator/gateway/gateway.h"
#include "operator/local/local_group.h"
#include "operator/local/local_options.h"
#include "operator/local/local_provision.h"
#include "operator/local/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

enum { LEAVING_MS = 10, LEAVING_MAX = 100 };

struct local {
    struct local_options options;
    struct manifest manifest;
    struct loop *loop;
    struct gateway *gateway;
    struct local_group *group;      // the group of the command line; NULL if clients create groups
    struct local_provision *groups; // NULL = clients create no groups
    struct provisioner provisioner;
    struct loop_signal *signals[3];
    struct loop_timer *leaving;
    struct loop_poll *parent; // the run ends when this process ends
    int parent_fd;
    int n_leaving;                     // how often it has waited for the last answers
    char url[256];                     // where workers connect
    char token[TRUST_TOKEN_SIZE];      // for a port
    char token_file[RUNDIR_PATH_SIZE]; // "" = it has written none
    struct authority authority;
    bool asked; // it was asked to stop
    int exit_code;
};

static struct local_group *find(const struct local *l, const char *uid)
{
    if (l->groups)
        return local_provision_find(l->groups, uid);
    return l->group && str_eq(l->group->uid, uid) ? l->group : NULL;
}

static void on_worker(void *ctx, const char *group_uid)
{
    struct local_group *g = find(ctx, group_uid);
    if (g)
        g->served = true;
}

static int kill_rank(void *ctx, const char *group_uid, uint32_t attempt, uint32_t rank, struct err *err)
{
    struct local_group *g = find(ctx, group_uid);
    return g ? local_group_kill(g, attempt, rank, err) : err_set(err, ERR_UNAVAILABLE, "no processes run now");
}

static void place(void *ctx, const char *group_uid, uint32_t rank, struct arena *a, const char **ret_pod,
                  const char **ret_node)
{
    const struct local *l = ctx;
    (void)ret_pod;
    if (l->groups)
        *ret_node = arena_strdup(a, local_provision_node(l->groups, group_uid, rank));
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

// Answers the calls that wait before it closes the socket.
static void leave(struct local *l)
{
    gateway_stop(l->gateway);
    loop_timer_arm(l->leaving, 0);
}

// Called for the group of the command line.
static void on_ended(void *ctx, struct local_group *g)
{
    struct local *l = ctx;
    l->exit_code = g->exit_code;
    if (l->asked || !g->served)
        leave(l);
    else
        fprintf(stderr, "cadre-local: calls are refused from now on; Ctrl-C ends the run\n");
}

static void on_child(void *ctx, int signo)
{
    struct local *l = ctx;
    (void)signo;
    if (l->group)
        local_group_reap(l->group);
    if (!l->groups)
        return;
    local_provision_reap(l->groups);
    if (l->asked && local_provision_idle(l->groups) && !loop_timer_armed(l->leaving))
        leave(l);
}

static void stop(struct local *l)
{
    bool again = l->asked;
    l->asked = true;
    bool runs = l->group && local_group_stop(l->group, "its run on this machine is ending");
    if (l->groups) {
        local_provision_stop(l->groups, again);
        runs = !local_provision_idle(l->groups);
    }
    if (runs)
        return;
    if (again && loop_timer_armed(l->leaving)) // the user asked twice
        loop_stop(l->loop);
    else
        leave(l);
}

static void on_stop(void *ctx, int signo)
{
    (void)signo;
    stop(ctx);
}

static void on_parent_gone(void *ctx, int events)
{
    struct local *l = ctx;
    (void)events;
    loop_poll_free(TAKE_PTR(l->parent));
    fprintf(stderr, "cadre-local: the program that started this run has ended; the run ends, too\n");
    stop(l);
}

// A kernel without pidfd_open() reports only the end of the thread that started us.
static int watch_parent(struct local *l, struct err *err)
{
    pid_t parent = l->options.with_parent; // not getppid(): in a container, process 1 may be the program itself
    l->parent_fd = (int)syscall(SYS_pidfd_open, parent, 0);
    if (l->parent_fd < 0)
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        return err_set(err, ERR_UNAVAILABLE, "the program that started this run has ended");
    if (l->parent_fd < 0)
        return 0;
    l->parent = loop_poll_read(l->loop, l->parent_fd, on_parent_gone, l, err);
    return l->parent ? 0 : err->code;
}

// `token_file` contains the token for the address; NULL = the address needs none.
static void say_where(const struct local *l, const char *url, const char *token_file)
{
    fprintf(stderr, "cadre-local: taking calls at %s, ", url);
    if (l->groups)
        fprintf(stderr, "for groups that programs make there");
    else
        fprintf(stderr, "path /v1/namespaces/%s/workergroups/%s", l->options.ns, l->options.group);
    fprintf(stderr, "%s%s\n", token_file ? ", with the token in " : "", token_file ? token_file : "");
}

static int write_token(struct local *l, struct err *err)
{
    int r = rundir_token(l->options.ns, l->options.group, l->token_file, err);
    if (r < 0)
        return r;
    unlink(l->token_file); // an earlier run may have left it
    int fd = open(l->token_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    ssize_t n = fd < 0 ? -1 : write(fd, l->token, strlen(l->token));
    if (n != (ssize_t)strlen(l->token))
        r = err_set(err, ERR_UNAVAILABLE, "cannot write the token to %s: %s", l->token_file, strerror(errno));
    file_close(&fd);
    return r;
}

// Any program on this machine can reach the port, and so can a web site in the user's browser. The token protects it.
static int listen_port(struct local *l, const char *address, struct err *err)
{
    if (!trust_draw(l->token))
        return err_set(err, ERR_UNAVAILABLE, "the kernel has no random bytes for a token");
    int port = gateway_listen(l->gateway, address, false, err);
    int r = port < 0 ? port : write_token(l, err);
    if (r < 0)
        return r;
    char at[256];
    snprintf(at, sizeof at, "ws://%.*s:%d", (int)(strrchr(address, ':') - address), address, port);
    say_where(l, at, l->token_file);
    return 0;
}

// The processes of the run always use a Unix socket, because nobody else reaches it. The socket comes first: only one
// run of the group can have it, and the other files of the group belong to that run.
static int listen_here(struct local *l, struct err *err)
{
    const char *address = l->options.listen;
    bool port = address && !str_starts(address, "unix:");
    char path[RUNDIR_PATH_SIZE];
    int r = !address || port ? rundir_socket(l->options.ns, l->options.group, path, err) : 0;
    if (r < 0)
        return r;
    if (!address || port)
        snprintf(l->url, sizeof l->url, "unix:%s", path);
    else
        snprintf(l->url, sizeof l->url, "%s", address);
    r = gateway_listen(l->gateway, l->url, false, err);
    if (r == 0 && port)
        r = listen_port(l, address, err);
    if (r == 0)
        say_where(l, l->url, NULL);
    return r;
}

static int start_group(struct local *l, const struct local_run *run, struct err *err)
{
    l->group = local_group_new(run, l->options.ns, l->options.group, &l->manifest);
    l->manifest = (struct manifest){0};
    return local_group_start(l->group, NULL, err);
}

static int start(struct local *l, struct err *err)
{
    struct gateway_config config = {.authority = &l->authority,
                                    .share = !l->options.plain,
                                    .sleeps = l->options.sleeps,
                                    .kill = kill_rank,
                                    .place = place,
                                    .worker = on_worker,
                                    .ctx = l};
    l->authority = trust_authority(l->token);
    if (l->options.serve) {
        l->groups = local_provision_new(l->loop, l->options.nodes, l->options.gpus, l->options.cpus, l->options.map);
        l->provisioner = local_provision_provisioner(l->groups);
        config.provisioner = &l->provisioner;
    }
    l->gateway = gateway_new(l->loop, &config, err);
    if (!l->gateway)
        return err->code;
    l->leaving = loop_timer_new(l->loop, on_leaving, l);
    l->signals[0] = loop_signal_new(l->loop, SIGTERM, on_stop, l);
    l->signals[1] = loop_signal_new(l->loop, SIGINT, on_stop, l);
    l->signals[2] = loop_signal_new(l->loop, SIGCHLD, on_child, l);
    const struct local_run run = {.loop = l->loop,
                                  .gateway = l->gateway,
                                  .agent = l->options.agent,
                                  .url = l->url,
                                  .several = l->options.serve,
                                  .ended = on_ended,
                                  .ctx = l};
    if (l->groups)
        local_provision_run(l->groups, &run);
    int r = l->options.with_parent ? watch_parent(l, err) : 0;
    if (r == 0)
        r = listen_here(l, err);
    return r == 0 && !l->groups ? start_group(l, &run, err) : r;
}

// Takes values from the manifest if the command line does not give them.
static int use_manifest(struct local *l, struct err *err)
{
    struct local_options *o = &l->options;
    if (o->file) {
        int r = manifest_read(o->file, o->group, o->map, &l->manifest, err);
        if (r < 0)
            return r;
        const struct meta *m = &l->manifest.group->obj.meta;
        o->group = m->name;
        o->ns = o->ns ? o->ns : m->ns && *m->ns ? m->ns : NULL;
    } else {
        l->manifest = (struct manifest){.processes = o->processes, .command = (const char **)o->command};
    }
    o->group = o->group ? o->group : "local";
    o->ns = o->ns ? o->ns : "default";
    return manifest_check_name(o->ns, o->group, err);
}

static void done(struct local *l)
{
    gateway_free(l->gateway);
    if (l->token_file[0])
        unlink(l->token_file);
    local_group_free(l->group);
    local_provision_free(l->groups);
    loop_timer_free(l->leaving);
    loop_poll_free(l->parent);
    file_close(&l->parent_fd);
    for (size_t i = 0; i < ARRAY_LEN(l->signals); i++)
        loop_signal_free(l->signals[i]);
    loop_free(l->loop);
    manifest_done(&l->manifest);
}

int main(int argc, char **argv)
{
    struct local l = {.parent_fd = -1};
    struct err err = ERR_INIT;
    int code = local_options_parse(argc, argv, &l.options);
    if (code >= 0)
        return code;
    if (use_manifest(&l, &err) < 0) {
        fprintf(stderr, "cadre-local: %s\n", err.msg);
        manifest_done(&l.manifest);
        return EX_DATAERR;
    }
    log_setup(LOG_INFO, LOG_TEXT);
    signal(SIGPIPE, SIG_IGN);
    l.loop = loop_new();
    if (start(&l, &err) == 0) {
        loop_run(l.loop);
    } else {
        fprintf(stderr, "cadre-local: %s\n", err.msg);
        l.exit_code = EX_UNAVAILABLE;
    }
    done(&l);
    return l.exit_code;
}
