// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/floor.h"

#include "bench/calls/latency.h"
#include "bench/lib/proc.h"
#include "common/base/mem.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK ((size_t)1 << 20)

static char chunk[CHUNK], questions[FLOOR_UNDER_WAY];

struct question { // how each begins
    uint32_t len, answer;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

// Ends of one TCP connection on loopback, [0] and [1].
static void connect_pair(int ret[2])
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof sa;
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&sa, len) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&sa, &len) < 0)
        die("floor: listen");
    ret[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ret[0], (struct sockaddr *)&sa, len) < 0 || (ret[1] = accept(listener, NULL, NULL)) < 0)
        die("floor: connect");
    for (int i = 0; i < 2; i++)
        setsockopt(ret[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    close(listener);
}

static void write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n <= 0)
            _exit(0);
        data += n;
        len -= (size_t)n;
    }
}

// [0] asks, the others are the ends. It may block: only one direction is busy at a time, or the bytes under way are so
// few that the sockets hold them.
static void relay(const int *fds, unsigned n)
{
    struct pollfd *polls = xcalloc(n, sizeof *polls);
    for (unsigned i = 0; i < n; i++)
        polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    while (poll(polls, n, -1) > 0)
        for (unsigned i = 0; i < n; i++) {
            ssize_t got = polls[i].revents ? recv(fds[i], chunk, CHUNK, 0) : -1;
            if (got == 0)
                _exit(0);
            for (unsigned to = i ? 0 : 1; got > 0 && to < (i ? 1 : n); to++)
                write_all(fds[to], chunk, (size_t)got);
        }
    _exit(1);
}

static void answer_questions(const int *fds, unsigned n)
{
    struct pollfd *polls = xcalloc(n, sizeof *polls);
    struct end {
        struct question q;
        size_t got;
    } *ends = xcalloc(n, sizeof *ends);
    for (unsigned i = 0; i < n; i++)
        polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    while (poll(polls, n, -1) > 0)
        for (unsigned i = 0; i < n; i++) {
            struct end *e = &ends[i];
            ssize_t got = polls[i].revents ? recv(fds[i], chunk, CHUNK, 0) : -1;
            if (got == 0)
                _exit(0);
            if (got < 0)
                continue;
            if (e->got == 0 && got >= (ssize_t)sizeof e->q) // cut only among many, which are all the same
                memcpy(&e->q, chunk, sizeof e->q);
            e->got += (size_t)got;
            size_t whole = e->got / e->q.len;
            e->got %= e->q.len;
            for (size_t left = whole * e->q.answer; left > 0; left -= MIN(left, CHUNK))
                write_all(fds[i], chunk, MIN(left, CHUNK));
        }
    _exit(1);
}

void floor_start(struct floor *f, unsigned n_ends)
{
    int pair[2], *relay_fds = xcalloc(n_ends + 1, sizeof(int)), *end_fds = xcalloc(n_ends, sizeof(int));
    *f = (struct floor){.n = n_ends};
    connect_pair(pair);
    f->fd = pair[0];
    relay_fds[0] = pair[1];
    for (unsigned i = 0; i < n_ends; i++) {
        connect_pair(pair);
        relay_fds[i + 1] = pair[0];
        end_fds[i] = pair[1];
    }
    f->relay = fork();
    if (f->relay == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        relay(relay_fds, n_ends + 1);
    }
    f->ends = fork();
    if (f->ends == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        answer_questions(end_fds, n_ends);
    }
    for (unsigned i = 0; i <= n_ends; i++) {
        close(relay_fds[i]);
        if (i < n_ends)
            close(end_fds[i]);
    }
    free(relay_fds);
    free(end_fds);
}

void floor_stop(struct floor *f)
{
    kill(f->relay, SIGKILL);
    kill(f->ends, SIGKILL);
    waitpid(f->relay, NULL, 0);
    waitpid(f->ends, NULL, 0);
    close(f->fd);
}

double floor_rate(struct floor *f, size_t len, size_t answer, double seconds, double *ret_p50_us)
{
    const struct question q = {(uint32_t)len, (uint32_t)answer};
    struct latency latency = {0};
    int64_t begin = proc_now_us(), now = begin;
    while ((double)(now - begin) < seconds * 1e6) {
        memcpy(chunk, &q, sizeof q);
        for (size_t left = len; left > 0; left -= MIN(left, CHUNK))
            write_all(f->fd, chunk, MIN(left, CHUNK));
        for (size_t left = answer * f->n; left > 0;) {
            ssize_t got = recv(f->fd, chunk, MIN(left, CHUNK), 0);
            if (got <= 0)
                die("floor: receive");
            left -= (size_t)got;
        }
        int64_t end = proc_now_us();
        latency_add(&latency, end - now);
        now = end;
    }
    return latency_finish(&latency, now - begin, ret_p50_us);
}

double floor_rate_many(struct floor *f, size_t len, size_t answer, unsigned in_flight, double seconds)
{
    const struct question q = {(uint32_t)len, (uint32_t)answer};
    int64_t begin = proc_now_us(), now = begin, end = begin + (int64_t)(seconds * 1e6);
    uint64_t done = 0;
    size_t bytes = 0; // of the next answer
    assert(in_flight * MAX(len, answer) <= FLOOR_UNDER_WAY);
    for (unsigned i = 0; i < in_flight; i++)
        memcpy(questions + i * len, &q, sizeof q);
    write_all(f->fd, questions, in_flight * len);
    for (unsigned left = in_flight; left > 0;) {
        ssize_t got = recv(f->fd, chunk, CHUNK, 0);
        if (got <= 0)
            die("floor: receive");
        bytes += (size_t)got;
        size_t answers = bytes / answer;
        bytes %= answer;
        done += answers;
        now = proc_now_us();
        if (now < end)
            write_all(f->fd, questions, answers * len);
        else
            left -= (unsigned)answers;
    }
    return (double)done * 1e6 / (double)(now - begin);
}
