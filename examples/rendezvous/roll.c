// SPDX-License-Identifier: Apache-2.0
#include "roll.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STRANGERS_MAX = 64, FILES_SPARE = 16 };

struct peer {
    int fd;
    int rank;         // -1 until its hello
    int64_t deadline; // for the hello
    size_t len;
    char line[LINE_SIZE];
};

struct roll {
    const struct job *job;
    struct member *members; // one a rank
    int n_here;
    struct peer *peers;
    struct pollfd *fds; // signals, listener, peers
    int n_peers, max_peers;
    int listener;
};

static int listener_open(const struct job *job)
{
    // A socket of IPv6 takes IPv4 too; kernels without IPv6 have only the second.
    static const char *const any[] = {"::", "0.0.0.0"};
    int error = 0;
    for (size_t i = 0; i < sizeof any / sizeof any[0]; i++) {
        struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *ai;
        if (getaddrinfo(any[i], job->port, &hints, &ai))
            continue;
        int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd >= 0) {
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
            if (ai->ai_family == AF_INET6)
                setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int));
            if (!bind(fd, ai->ai_addr, ai->ai_addrlen) && !listen(fd, SOMAXCONN)) {
                freeaddrinfo(ai);
                return fd;
            }
        }
        error = errno;
        freeaddrinfo(ai);
        if (fd >= 0)
            close(fd);
        if (error == EADDRINUSE)
            break;
    }
    job_say(job, "cannot listen on port %s: %s", job->port, strerror(error));
    return -1;
}

static void peer_answer(const struct peer *peer, const char *line)
{
    // The send buffer of a new connection has room for a line. A peer that is gone needs no answer.
    (void)!send(peer->fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Forgets the peer at index i; the last one takes its place.
static void peer_drop(struct roll *roll, int i)
{
    struct peer *peer = &roll->peers[i];
    if (peer->rank >= 0) {
        roll->members[peer->rank].here = false;
        roll->n_here--;
        job_say(roll->job, "rank %d left again, %d of %d are here", peer->rank, roll->n_here, roll->job->world);
    }
    close(peer->fd);
    *peer = roll->peers[--roll->n_peers];
}

// Reads a hello. Returns NULL, or why it does not count.
static const char *hello_parse(const struct job *job, char *line, int *ret_rank, struct member *ret)
{
    const char *word[7];
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++)
        word[i] = strsep(&line, " ");
    int world;
    if (strcmp(word[0], "hello") || line || !word[6])
        return "this is a rendezvous, say hello";
    if (strcmp(word[1], job->addr))
        return "this is the rendezvous of another group";
    if (!number_parse(word[2], 1, WORLD_MAX, &world) || world != job->world)
        return "the group has another WORLD_SIZE";
    if (!number_parse(word[3], 0, job->world - 1, ret_rank) || !number_parse(word[4], 0, INT32_MAX, &ret->local_rank))
        return "no such rank";
    if (!name_copy(ret->host, word[5]) || !name_copy(ret->node, word[6]))
        return "not a name";
    return NULL;
}

static const char *peer_join(struct roll *roll, struct peer *peer)
{
    struct member member = {.here = true};
    int rank;
    const char *why = hello_parse(roll->job, peer->line, &rank, &member);
    if (why)
        return why;
    if (roll->members[rank].here)
        return "this rank is here already";
    roll->members[rank] = member;
    roll->n_here++;
    peer->rank = rank;
    job_say(roll->job, "rank %d joined, %d of %d are here", rank, roll->n_here, roll->job->world);
    return NULL;
}

// Takes what the peer sent. Returns false when the connection is to be closed.
static bool peer_read(struct roll *roll, struct peer *peer)
{
    ssize_t n = recv(peer->fd, peer->line + peer->len, sizeof peer->line - peer->len, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0)
        return false;
    if (peer->rank >= 0)
        return true; // nothing more is expected, and nothing is kept: len stays
    peer->len += (size_t)n;
    char *end = memchr(peer->line, '\n', peer->len);
    const char *why = peer->len == sizeof peer->line ? "the line is too long" : NULL;
    if (end) {
        *end = '\0';
        why = peer_join(roll, peer);
        peer->len = 0;
    }
    if (why) {
        char answer[LINE_SIZE];
        snprintf(answer, sizeof answer, "no %s\n", why);
        peer_answer(peer, answer);
        job_say(roll->job, "sent a stranger away: %s", why);
    }
    return !why;
}

static void peer_accept(struct roll *roll)
{
    int fd = accept4(roll->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (roll->n_peers == roll->max_peers) {
        close(fd); // a rank tries again
        return;
    }
    roll->peers[roll->n_peers++] = (struct peer){.fd = fd, .rank = -1, .deadline = now_ms() + HELLO_MS};
}

static void roll_missing(const struct roll *roll)
{
    char ranks[128];
    size_t len = 0;
    for (int i = 0; i < roll->job->world && len < sizeof ranks - 16; i++)
        if (!roll->members[i].here)
            len += (size_t)snprintf(ranks + len, sizeof ranks - len, "%s%d", len ? ", " : "", i);
    job_say(roll->job, "%d of %d are here after %d s, missing: %s%s", roll->n_here, roll->job->world,
            job_waited_s(roll->job), ranks, len >= sizeof ranks - 16 ? " ..." : "");
}

// One turn of the loop: waits for something to happen and takes it.
static void roll_turn(struct roll *roll, int64_t until)
{
    roll->fds[1] = (struct pollfd){.fd = roll->listener, .events = POLLIN};
    for (int i = 0; i < roll->n_peers; i++) {
        roll->fds[2 + i] = (struct pollfd){.fd = roll->peers[i].fd, .events = POLLIN};
        if (roll->peers[i].rank < 0 && roll->peers[i].deadline < until)
            until = roll->peers[i].deadline;
    }
    job_poll(roll->job, roll->fds, (nfds_t)(2 + roll->n_peers), until);
    int64_t now = now_ms();
    for (int i = roll->n_peers - 1; i >= 0; i--) { // backwards, because a drop moves the last one
        struct peer *peer = &roll->peers[i];
        bool late = peer->rank < 0 && now >= peer->deadline;
        if (late || (roll->fds[2 + i].revents && !peer_read(roll, peer)))
            peer_drop(roll, i);
    }
    if (roll->fds[1].revents)
        peer_accept(roll);
}

static void roll_print(const struct roll *roll)
{
    int host = (int)strlen("HOST"), node = (int)strlen("NODE"), world = roll->job->world;
    for (int i = 0; i < world; i++) {
        int h = (int)strlen(roll->members[i].host), n = (int)strlen(roll->members[i].node);
        host = h > host ? h : host;
        node = n > node ? n : node;
    }
    printf("roll-call: %d of %d ranks\n", roll->n_here, world);
    printf("  %-5s %-*s  %-*s  %s\n", "RANK", host, "HOST", node, "NODE", "LOCAL RANK");
    for (int i = 0; i < world; i++) {
        const struct member *m = &roll->members[i];
        printf("  %-5d %-*s  %-*s  %d\n", i, host, m->host, node, m->node, m->local_rank);
    }
}

static bool roll_call(struct roll *roll)
{
    const struct job *job = roll->job;
    int64_t progress = now_ms() + PROGRESS_MS;
    job_say(job, "waiting at port %s, 1 of %d are here", job->port, job->world);
    while (roll->n_here < job->world) {
        int64_t now = now_ms();
        if (now >= job->deadline || now >= progress) {
            roll_missing(roll);
            progress = now + PROGRESS_MS;
        }
        if (now >= job->deadline)
            return false;
        roll_turn(roll, progress);
    }
    roll_print(roll);
    for (int i = 0; i < roll->n_peers; i++)
        if (roll->peers[i].rank >= 0)
            peer_answer(&roll->peers[i], "go\n");
    return true;
}

// A descriptor a rank: asks for all that the process may have.
static bool files_allow(const struct job *job, int n)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files))
        return true;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_max >= (rlim_t)n + FILES_SPARE)
        return true;
    job_say(job, "%d connections need more open files than the %llu allowed (ulimit -n)", n,
            (unsigned long long)files.rlim_max);
    return false;
}

bool roll_lead(const struct job *job)
{
    struct roll roll = {.job = job, .n_here = 1, .max_peers = job->world + STRANGERS_MAX};
    if (!files_allow(job, roll.max_peers))
        return false;
    roll.listener = listener_open(job);
    if (roll.listener < 0)
        return false;
    roll.members = calloc((size_t)job->world, sizeof *roll.members);
    roll.peers = calloc((size_t)roll.max_peers, sizeof *roll.peers);
    roll.fds = calloc((size_t)roll.max_peers + 2, sizeof *roll.fds);
    bool done = false;
    if (roll.members && roll.peers && roll.fds) {
        roll.members[0] = job->self;
        done = roll_call(&roll);
    } else {
        job_say(job, "out of memory");
    }
    for (int i = 0; i < roll.n_peers; i++)
        close(roll.peers[i].fd);
    close(roll.listener);
    free(roll.members);
    free(roll.peers);
    free(roll.fds);
    return done;
}
