// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/nursery.h"

#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sysexits.h>
#include <unistd.h>

enum { ASKED_MAX = 64 << 20, SAID_MAX = 1024, FILES = 4 };

struct stand_in {
    int fd, signals;  // to the nursery, and a signalfd; -1 = not open
    sigset_t blocked; // the signals that are passed on
    bool forked;
    int code;
};

// Asking for the agent

static void put(struct buf *b, const char *text)
{
    buf_append(b, text, strlen(text) + 1);
}

// Writes the program, its directory, the number of its control descriptor, the number of arguments, the arguments, and
// the environment. Each string ends with NUL.
static int describe(int argc, char *const *argv, int control)
{
    char program[PATH_MAX] = "", dir[PATH_MAX], number[16];
    _cleanup_(buf_done) struct buf b = BUF_INIT(ASKED_MAX);
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0 || !getcwd(dir, sizeof dir))
        return -1;
    put(&b, program);
    put(&b, dir);
    snprintf(number, sizeof number, "%d", control);
    put(&b, number);
    snprintf(number, sizeof number, "%d", argc);
    put(&b, number);
    for (int i = 0; i < argc; i++)
        put(&b, argv[i]);
    for (char **e = environ; *e; e++)
        put(&b, *e);
    return file_in_memory("agent", &b);
}

static bool ask(struct stand_in *s, const char *path, int argc, char *const *argv, int control)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, strlen(path));
    s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&address, sizeof address) != 0)
        return false;
    int described = describe(argc, argv, control);
    const int files[FILES] = {described, STDOUT_FILENO, STDERR_FILENO, control >= 0 ? control : STDERR_FILENO};
    bool asked = described >= 0 && file_send(s->fd, "A", 1, files, FILES);
    file_close(&described);
    return asked;
}

// Standing for the agent

static _Noreturn void die_of(const struct stand_in *s, int signo)
{
    signal(signo, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &s->blocked, NULL);
    raise(signo);
    _exit(128 + signo);
}

static void on_signal(const struct stand_in *s)
{
    struct signalfd_siginfo info;
    if (read(s->signals, &info, sizeof info) != sizeof info)
        return;
    if (!s->forked)
        die_of(s, (int)info.ssi_signo); // the nursery notices it, and has nothing to do
    char number[16];
    int n = snprintf(number, sizeof number, "%u", info.ssi_signo);
    if (send(s->fd, number, (size_t)n, MSG_NOSIGNAL) != n)
        fprintf(stderr, "cadre-agent: signal %u does not reach the agent, whose nursery has ended\n", info.ssi_signo);
}

// Takes a message. "P": the agent was forked. "N" and a reason: it was not forked. "X" and a number: its exit code. "K"
// and a number: the signal that ended it. Returns false after the last message.
static bool on_said(struct stand_in *s)
{
    char said[SAID_MAX];
    int64_t number = 0;
    ssize_t n = recv(s->fd, said, sizeof said - 1, 0);
    if (n < 0 && errno == EINTR)
        return true;
    said[MAX(n, (ssize_t)0)] = '\0';
    if (said[0] == 'P') {
        s->forked = true;
        return true;
    }
    bool known = said[0] && str_to_i64(said + 1, &number);
    if (said[0] == 'N')
        fprintf(stderr, "cadre-agent: started without the nursery: %s\n", said + 1);
    else if (said[0] == 'K' && known && number == SIGTERM)
        die_of(s, SIGTERM);
    else if (s->forked && !known)
        fprintf(stderr, "cadre-agent: the nursery has ended, and with it this agent\n");
    s->code = !known ? EX_OSERR : said[0] == 'K' ? 128 + (int)number : (int)number;
    return false;
}

static void live(struct stand_in *s)
{
    struct pollfd fds[] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->signals, .events = POLLIN}};
    for (bool goes_on = true; goes_on;) {
        if (poll(fds, ARRAY_LEN(fds), -1) < 0)
            continue;
        if (fds[1].revents)
            on_signal(s);
        if (fds[0].revents)
            goes_on = on_said(s);
    }
}

bool nursery_run(int argc, char *const *argv, int control, int *ret_code)
{
    const char *named = getenv("RAY_ON_CADRE_NURSERY");
    struct stand_in s = {.fd = -1, .signals = -1};
    if (str_empty(named))
        return false;
    _cleanup_(free_p) char *path = xstrdup(named);
    unsetenv("RAY_ON_CADRE_NURSERY");
    sigemptyset(&s.blocked);
    sigaddset(&s.blocked, SIGTERM);
    sigaddset(&s.blocked, SIGINT);
    sigaddset(&s.blocked, SIGHUP);
    s.signals = signalfd(-1, &s.blocked, SFD_CLOEXEC);
    if (s.signals >= 0 && ask(&s, path, argc, argv, control)) {
        sigprocmask(SIG_BLOCK, &s.blocked, NULL);
        live(&s);
        sigprocmask(SIG_UNBLOCK, &s.blocked, NULL);
    }
    file_close(&s.fd);
    file_close(&s.signals);
    *ret_code = s.code;
    return s.forked;
}
