// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/rank_process.h"

#include "common/base/arena.h"
#include "common/base/child.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/agent/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATHS_MAX = 64, GONE_LOOK_MS = 100, GONE_GIVE_UP_MS = 10 * 1000 };
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum step { STEP_DIR, STEP_EXEC, STEP_LOADER, STEP_OTHER };

// The child writes this into the pipe if it cannot become the command.
struct start_failure {
    int step; // enum step
    int error;
};

struct process {
    struct process_config config;
    pid_t pid;
    struct child_reaper_watch *child, *orphans;
    int start_fd; // closes when the command runs; -1 afterwards
    struct loop_poll *start_poll;
    struct loop_timer *kill_timer, *gone_timer;
    int64_t kill_at_ms;    // set when it is stopped
    int64_t give_up_at_ms; // set when it is killed
    bool stopping, killed, exited, gone;
    struct process_exit exit;
    char *command, *dir; // for messages
    char error[512];
};

// The paths where the child looks for the command, in order.
struct lookup {
    const char *paths[PATHS_MAX + 1];
    size_t n;
};

static void lookup_init(struct lookup *l, const struct process_config *c, struct arena *a)
{
    const char *command = c->argv[0], *path = environment_get(c->env, "PATH");
    l->n = 0;
    if (strchr(command, '/'))
        l->paths[l->n++] = command;
    else
        for (const char *p = path ? path : DEFAULT_PATH; *command && *p && l->n < PATHS_MAX;) {
            size_t len = strcspn(p, ":");
            if (len > 0)
                l->paths[l->n++] = arena_printf(a, "%.*s/%s", (int)len, p, command);
            p += len + (p[len] == ':');
        }
    l->paths[l->n] = NULL;
}

// The functions from here to child_run() run between fork and exec. The threads of the parent do not exist there. So
// they may call only what POSIX allows in a signal handler.
static bool child_redirect(const struct process_config *c, int in, int start_fd)
{
    if (dup2(in, STDIN_FILENO) < 0 || dup2(c->out, STDOUT_FILENO) < 0 || dup2(c->err, STDERR_FILENO) < 0)
        return false;
    // Closes what a library opened without O_CLOEXEC. Kernels before 5.11 cannot do this.
    syscall(SYS_close_range, 3u, ~0u, 1u << 2 /* CLOSE_RANGE_CLOEXEC */);
    return fcntl(start_fd, F_SETFD, FD_CLOEXEC) == 0;
}

// Follows the rules of execvp(): the search continues if a path does not exist, or is not executable for this user.
static struct start_failure child_exec(const struct process_config *c, const struct lookup *l)
{
    struct start_failure f = {STEP_EXEC, ENOENT};
    for (size_t i = 0; i < l->n; i++) {
        execve(l->paths[i], (char *const *)c->argv, (char *const *)c->env);
        int error = errno;
        if (error == EACCES)
            f.error = EACCES;
        else if (error != ENOENT && error != ENOTDIR)
            return (struct start_failure){STEP_EXEC, error};
        else if (error == ENOENT && access(l->paths[i], F_OK) == 0)
            return (struct start_failure){STEP_LOADER, ENOENT};
    }
    return f;
}

static void child_run(const struct process_config *c, const struct lookup *l, int in, int start_fd, pid_t parent)
{
    struct start_failure f = {STEP_OTHER, 0};
    setsid();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || !child_redirect(c, in, start_fd)) {
        f.error = errno;
    } else if (getppid() != parent) { // the parent died before PR_SET_PDEATHSIG was set
        _exit(PROCESS_EXIT_SIGNAL + SIGKILL);
    } else if (c->dir && chdir(c->dir) != 0) {
        f = (struct start_failure){STEP_DIR, errno};
    } else {
        f = child_exec(c, l);
    }
    bool missing = f.step == STEP_EXEC && f.error == ENOENT;
    if (write(start_fd, &f, sizeof f) < 0)
        missing = false; // the parent is gone, nobody reads it
    _exit(missing ? PROCESS_EXIT_NOT_FOUND : PROCESS_EXIT_NOT_RUNNABLE);
}

static void explain_missing(struct process *p)
{
    if (str_eq(p->command, "cadre-worker"))
        snprintf(p->error, sizeof p->error,
                 "cannot start cadre-worker: no such file or directory in PATH: spec.worker.module needs an image that "
                 "has it (Cadre's worker image, or one with the SDK installed)");
    else
        snprintf(p->error, sizeof p->error, "cannot start %s: no such file or directory%s: is it in the image?",
                 p->command, strchr(p->command, '/') ? "" : " in PATH");
}

static void explain(struct process *p, const struct start_failure *f)
{
    if (f->step == STEP_DIR)
        snprintf(p->error, sizeof p->error, "cannot start %s in directory %s: %s", p->command, p->dir,
                 strerror(f->error));
    else if (f->step == STEP_EXEC && f->error == ENOENT)
        explain_missing(p);
    else if (f->step == STEP_LOADER)
        snprintf(
            p->error, sizeof p->error,
            "cannot start %s: the file is there, but not the interpreter or loader that it names: a wrong #! line, "
            "or a program linked for another C library?",
            p->command);
    else if (f->error == ENOEXEC)
        snprintf(p->error, sizeof p->error,
                 "cannot start %s: not a program for this machine: a script without a #! line, or built for another "
                 "architecture?",
                 p->command);
    else
        snprintf(p->error, sizeof p->error, "cannot start %s: %s%s", p->command, strerror(f->error),
                 f->error == EACCES ? ": is it executable for this user?" : "");
}

// Returns true when it is known whether the command runs.
static bool read_start(struct process *p)
{
    struct start_failure f;
    ssize_t n = read(p->start_fd, &f, sizeof f);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n == sizeof f)
        explain(p, &f);
    loop_poll_free(TAKE_PTR(p->start_poll));
    file_close(&p->start_fd);
    return true;
}

static void on_start_fd(void *ctx, int events)
{
    struct process *p = ctx;
    (void)events;
    if (read_start(p) && !p->error[0])
        p->config.fn(p->config.ctx, PROCESS_STARTED);
}

static void signal_group(const struct process *p, int signo)
{
    if (kill(-p->pid, signo) != 0 && !p->exited)
        kill(p->pid, signo); // between fork and setsid it has no process group yet
}

static void kill_group(struct process *p)
{
    signal_group(p, SIGKILL);
    p->killed = true;
    p->give_up_at_ms = loop_now_ms(p->config.loop) + GONE_GIVE_UP_MS;
}

// After SIGTERM, other members of the process group (children of a shell) may use the rest of the grace time. After
// SIGKILL, a member may stay as a zombie, if its parent left the group and does not reap it. The wait for it is
// limited.
static bool group_alive(const struct process *p)
{
    if (kill(-p->pid, 0) != 0 && errno == ESRCH)
        return false;
    return !p->killed || loop_now_ms(p->config.loop) < p->give_up_at_ms;
}

static void look_gone(void *ctx)
{
    struct process *p = ctx;
    if (!p->exited || p->gone)
        return;
    if (group_alive(p)) {
        if (p->killed)
            loop_timer_arm(p->gone_timer, GONE_LOOK_MS);
        return;
    }
    p->gone = true;
    child_reaper_unwatch(TAKE_PTR(p->orphans));
    loop_timer_disarm(p->kill_timer);
    loop_timer_disarm(p->gone_timer);
    p->config.fn(p->config.ctx, PROCESS_GONE);
}

static void on_orphan(void *ctx, int status)
{
    (void)status;
    look_gone(ctx);
}

static void on_child_exit(void *ctx, int status)
{
    struct process *p = ctx;
    p->child = NULL;
    if (p->start_fd >= 0)
        read_start(p); // it is dead: everything it wrote is there
    p->exited = true;
    if (WIFSIGNALED(status))
        p->exit = (struct process_exit){
            .code = PROCESS_EXIT_SIGNAL + WTERMSIG(status), .signal = WTERMSIG(status), .core = WCOREDUMP(status) != 0};
    else
        p->exit = (struct process_exit){.code = WEXITSTATUS(status)};
    p->exit.ours = p->killed;
    if (!p->stopping)
        kill_group(p);
    p->orphans = child_reaper_watch(p->config.reaper, 0, on_orphan, p);
    loop_timer_arm(p->gone_timer, 0); // PROCESS_EXITED comes first in any case
    p->config.fn(p->config.ctx, PROCESS_EXITED);
}

static void on_kill_timer(void *ctx)
{
    struct process *p = ctx;
    kill_group(p);
    loop_timer_arm(p->gone_timer, GONE_LOOK_MS);
}

static pid_t fork_child(const struct process_config *c, const struct lookup *l, int in, int start_fd)
{
    pid_t parent = getpid(), pid = child_fork();
    if (pid == 0)
        child_run(c, l, in, start_fd, parent);
    return pid;
}

static pid_t start_child(const struct process_config *c, int *ret_start_fd, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct lookup lookup;
    int ends[2] = {-1, -1};
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pid_t pid = -1;
    lookup_init(&lookup, c, &a);
    if (null_fd < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0 ||
        (pid = fork_child(c, &lookup, c->in ? c->in : null_fd, ends[1])) < 0)
        err_set(err, ERR_UNAVAILABLE, "cannot start %s: %s", c->argv[0], strerror(errno));
    file_close(&null_fd);
    file_close(&ends[1]);
    if (pid < 0)
        file_close(&ends[0]);
    *ret_start_fd = ends[0];
    return pid;
}

// start_fd closes when the child has become the command.
static struct process *watch(const struct process_config *c, pid_t pid, int start_fd, struct err *err)
{
    struct process *p = xcalloc(1, sizeof *p);
    p->config = *c;
    p->command = xstrdup(c->argv[0]);
    p->dir = xstrdup(c->dir ? c->dir : ".");
    p->pid = pid;
    p->start_fd = start_fd;
    p->child = child_reaper_watch(c->reaper, pid, on_child_exit, p);
    p->kill_timer = loop_timer_new(c->loop, on_kill_timer, p);
    p->gone_timer = loop_timer_new(c->loop, look_gone, p);
    p->start_poll = loop_poll_read(c->loop, start_fd, on_start_fd, p, err);
    if (p->start_poll)
        return p;
    err_wrap(err, "cannot start %s", p->command);
    process_free(p);
    return NULL;
}

struct process *process_start(const struct process_config *c, struct err *err)
{
    int start_fd;
    pid_t pid = start_child(c, &start_fd, err);
    return pid < 0 ? NULL : watch(c, pid, start_fd, err);
}

struct process *process_adopt(const struct process_config *c, int pid, int fd, struct err *err)
{
    if (child_reaper_is_child(pid) && send(fd, "", 1, MSG_NOSIGNAL) == 1)
        return watch(c, pid, fd, err);
    close(fd);
    err_set(err, ERR_UNAVAILABLE, "the process that was forked for it has died");
    return NULL;
}

void process_stop(struct process *p, int64_t grace_ms)
{
    int64_t kill_at = loop_now_ms(p->config.loop) + MAX(grace_ms, 0);
    if (p->gone || (p->stopping && kill_at >= p->kill_at_ms))
        return;
    if (grace_ms > 0 && !p->stopping)
        signal_group(p, SIGTERM);
    p->stopping = true;
    p->kill_at_ms = kill_at;
    loop_timer_arm(p->kill_timer, grace_ms);
}

int process_pid(const struct process *p)
{
    return p->pid;
}

struct process_exit process_exit(const struct process *p)
{
    return p->exit;
}

const char *process_error(const struct process *p)
{
    return p->error;
}

void process_free(struct process *p)
{
    if (!p)
        return;
    if (!p->gone)
        kill_group(p);
    child_reaper_unwatch(p->child); // a child without a watch counts as an orphan when it is reaped
    child_reaper_unwatch(p->orphans);
    loop_poll_free(p->start_poll);
    loop_timer_free(p->kill_timer);
    loop_timer_free(p->gone_timer);
    file_close(&p->start_fd);
    free(p->command);
    free(p->dir);
    free(p);
}
