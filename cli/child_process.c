// SPDX-License-Identifier: Apache-2.0
#include "cli/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 3000, STEP_MS = 20 };

static volatile sig_atomic_t caught;

static void on_signal(int signo)
{
    caught = signo;
}

void process_catch_signals(void)
{
    // Without SA_RESTART, so a wait is interrupted and checks for the signal.
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int process_interrupted(void)
{
    return caught;
}

static int interrupted(struct err *err)
{
    return err_set(err, ERR_CANCELED, "interrupted");
}

static int status_of(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// In the child. SIGPIPE is ignored in this process, and the child would inherit that. A kubectl proxy must not outlive
// this process, however it ends.
static void become(const char *const argv[], int out_fd, int err_fd, pid_t parent)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    signal(SIGPIPE, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent || dup2(nothing, 0) < 0 || dup2(out_fd, 1) < 0 ||
        (err_fd >= 0 && dup2(err_fd, 2) < 0))
        return;
    execvp(argv[0], (char *const *)argv);
}

static int spawn(const char *const argv[], int out_fd, int err_fd, pid_t *ret, struct err *err)
{
    int failed[2], why = 0;
    pid_t parent = getpid();
    if (pipe2(failed, O_CLOEXEC) < 0)
        return err_set(err, ERR_IO, "cannot make a pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        become(argv, out_fd, err_fd, parent);
        why = errno;
        _exit(write(failed[1], &why, sizeof why) < 0 ? 126 : 127);
    }
    if (pid < 0)
        why = errno;
    close(failed[1]);
    if (pid > 0 && read(failed[0], &why, sizeof why) > 0) // nothing comes if exec succeeded
        process_wait(pid);
    close(failed[0]);
    *ret = why ? -1 : pid;
    return why ? err_set(err, ERR_IO, "cannot run %s: %s%s", argv[0], strerror(why),
                         why == ENOENT ? "; is it installed and in PATH?" : "")
               : 0;
}

int process_start(const char *const argv[], pid_t *ret_pid, int *ret_fd, int err_fd, struct err *err)
{
    int fds[2] = {-1, -1};
    if (!ret_fd)
        fds[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    else if (pipe2(fds, O_CLOEXEC) < 0)
        return err_set(err, ERR_IO, "cannot make a pipe: %s", strerror(errno));
    int r = spawn(argv, fds[1], err_fd, ret_pid, err);
    close(fds[1]);
    if (r < 0 && ret_fd)
        close(fds[0]);
    else if (ret_fd)
        *ret_fd = fds[0];
    return r;
}

int process_wait(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 127;
    return status_of(status);
}

int process_ended(pid_t pid, int *ret_status)
{
    int status;
    pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid)
        *ret_status = status_of(status);
    return got == pid;
}

void process_end(pid_t pid)
{
    int status;
    kill(pid, SIGTERM);
    for (int waited = 0; waited < PATIENCE_MS; waited += STEP_MS) {
        if (process_ended(pid, &status))
            return;
        poll(NULL, 0, STEP_MS);
    }
    kill(pid, SIGKILL);
    process_wait(pid);
}

// Reads until both ends are closed.
static int collect(struct pollfd fds[2], struct buf *const out[2], struct err *err)
{
    char data[16 << 10];
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        if (caught)
            return interrupted(err);
        if (poll(fds, 2, 1000) < 0)
            continue; // EINTR
        for (int i = 0; i < 2; i++) {
            if (fds[i].fd < 0 || !fds[i].revents)
                continue;
            ssize_t n = read(fds[i].fd, data, sizeof data);
            if (n > 0 && buf_append(out[i], data, (size_t)n) < 0)
                return err_set(err, ERR_LIMIT, "prints more than %zu bytes", out[i]->cap);
            if (n <= 0 && !(n < 0 && errno == EINTR))
                fds[i].fd = -1;
        }
    }
    return 0;
}

int process_capture(const char *const argv[], struct buf *out, struct buf *err_out, struct err *err)
{
    int err_pipe[2] = {-1, -1}, fd = -1;
    pid_t pid = -1;
    if (pipe2(err_pipe, O_CLOEXEC) < 0)
        return err_set(err, ERR_IO, "cannot make a pipe: %s", strerror(errno));
    int r = process_start(argv, &pid, &fd, err_pipe[1], err);
    close(err_pipe[1]);
    if (r == 0) {
        struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = err_pipe[0], .events = POLLIN}};
        r = collect(fds, (struct buf *const[2]){out, err_out}, err);
        if (r < 0) {
            err_wrap(err, "%s %s", argv[0], argv[1]);
            process_end(pid);
        } else {
            r = process_wait(pid);
        }
        close(fd);
    }
    close(err_pipe[0]);
    return r;
}
