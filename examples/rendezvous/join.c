// SPDX-License-Identifier: Apache-2.0
#include "join.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RETRY_FIRST_MS = 100, RETRY_MAX_MS = 1000 }; // between two tries, doubled each time

// Connects to one address. Returns the socket or -1 with errno set.
static int address_connect(const struct job *job, const struct addrinfo *ai)
{
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;
    if (fd < 0)
        return -1;
    if (!connect(fd, ai->ai_addr, ai->ai_addrlen))
        return fd;
    if (errno == EINPROGRESS) {
        // A pod that is not there yet may swallow the SYN: try again soon instead of waiting for the kernel to give up.
        struct pollfd fds[2] = {[1] = {.fd = fd, .events = POLLOUT}};
        if (job_poll(job, fds, 2, now_ms() + HELLO_MS))
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error});
        else
            error = ETIMEDOUT;
        if (!error)
            return fd;
    } else {
        error = errno;
    }
    close(fd);
    errno = error;
    return -1;
}

// Returns a connection to rank 0, or -1 and why not.
static int master_connect(const struct job *job, char *why, size_t size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    int rc = getaddrinfo(job->addr, job->port, &hints, &list);
    if (rc) {
        snprintf(why, size, "its name is not known yet (%s)", gai_strerror(rc));
        return -1;
    }
    int fd = -1;
    for (struct addrinfo *ai = list; ai && fd < 0; ai = ai->ai_next) {
        fd = address_connect(job, ai);
        if (fd < 0)
            snprintf(why, size, "%s", errno == ECONNREFUSED ? "it does not listen yet" : strerror(errno));
    }
    freeaddrinfo(list);
    return fd;
}

// Says hello and waits for the answer. Returns true for go, else why not.
static bool hello_exchange(const struct job *job, int fd, char *why, size_t size)
{
    char line[LINE_SIZE];
    int len = snprintf(line, sizeof line, "hello %s %d %d %d %s %s\n", job->addr, job->world, job->rank,
                       job->self.local_rank, job->self.host, job->self.node);
    if (len >= (int)sizeof line || send(fd, line, (size_t)len, MSG_NOSIGNAL) != len) {
        snprintf(why, size, "the hello could not be sent");
        return false;
    }
    job_say(job, "connected to rank 0 at %s:%s, waiting for the others", job->addr, job->port);
    size_t have = 0;
    struct pollfd fds[2] = {[1] = {.fd = fd, .events = POLLIN}};
    while (job_poll(job, fds, 2, job->deadline)) {
        ssize_t n = recv(fd, line + have, sizeof line - 1 - have, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n <= 0) {
            snprintf(why, size, "rank 0 closed the connection");
            return false;
        }
        have += (size_t)n;
        line[have] = '\0';
        char *end = strchr(line, '\n');
        if (!end)
            continue;
        *end = '\0';
        if (!strcmp(line, "go"))
            return true;
        snprintf(why, size, "rank 0 says: %.200s", line);
        return false;
    }
    snprintf(why, size, "not all ranks came");
    return false;
}

bool join_master(const struct job *job)
{
    char why[NAME_SIZE] = "", said[NAME_SIZE] = "";
    int64_t retry_ms = RETRY_FIRST_MS, progress = 0;
    for (;;) {
        int fd = master_connect(job, why, sizeof why);
        if (fd >= 0) {
            bool go = hello_exchange(job, fd, why, sizeof why);
            close(fd);
            if (go)
                return true;
        }
        int64_t now = now_ms();
        if (now >= job->deadline)
            break;
        if (strcmp(why, said) || now >= progress) {
            job_say(job, "waiting for rank 0 at %s:%s: %s (%d s)", job->addr, job->port, why, job_waited_s(job));
            memcpy(said, why, sizeof said);
            progress = now + PROGRESS_MS;
        }
        job_poll(job, (struct pollfd[1]){{0}}, 1, now + retry_ms);
        retry_ms = retry_ms * 2 < RETRY_MAX_MS ? retry_ms * 2 : RETRY_MAX_MS;
    }
    job_say(job, "gave up on rank 0 at %s:%s after %d s: %s", job->addr, job->port, job->timeout_s, why);
    return false;
}
