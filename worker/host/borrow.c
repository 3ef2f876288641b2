// SPDX-License-Identifier: Apache-2.0
#include "worker/host/borrow.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "worker/host/lending.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SLICE_MS = 100, MESSAGE_MAX = 512 };

static int unreachable(const struct borrow *b, const char *why, struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE,
                   "OwnerUnreachable: %s, which has the object, at %s: %s; workers fetch from each other directly: "
                   "NetworkPolicies must allow that",
                   b->owner, b->at, why);
}

static int lost(const struct borrow *b, uint64_t got, const char *why, struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE,
                   "OwnerUnreachable: %s was lost after %" PRIu64 " of %" PRIu64 " bytes of the object: %s", b->owner,
                   got, b->bytes, why);
}

// 0: ready. ERR_TIMEOUT, ERR_CANCELED.
static int wait_for(const struct borrow *b, int fd, short events, int64_t ms)
{
    int64_t end = clock_mono_ms(&clock_system) + ms;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        if (poll(&p, 1, SLICE_MS) > 0)
            return 0;
        if (atomic_load(b->canceled))
            return ERR_CANCELED;
        if (clock_mono_ms(&clock_system) >= end)
            return ERR_TIMEOUT;
    }
}

static int stopped(const struct borrow *b, struct err *err)
{
    return err_set(err, ERR_CANCELED, "canceled while the object of %s was fetched", b->owner);
}

static int look_up(const struct borrow *b, struct addrinfo **ret)
{
    char host[64], port[8];
    const char *colon = strrchr(b->at, ':'), *begin = b->at;
    size_t len = colon ? (size_t)(colon - b->at) : 0;
    if (len >= 2 && begin[0] == '[' && begin[len - 1] == ']') {
        begin++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof host || strlen(colon + 1) >= sizeof port)
        return ERR_INVALID;
    snprintf(host, sizeof host, "%.*s", (int)len, begin);
    snprintf(port, sizeof port, "%s", colon + 1);
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    return getaddrinfo(host, port, &hints, ret) == 0 ? 0 : ERR_INVALID;
}

static int dial(const struct borrow *b, int *ret, struct err *err)
{
    struct addrinfo *to = NULL;
    if (look_up(b, &to) < 0)
        return unreachable(b, "that is no address", err);
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), why = errno, r = 0;
    if (fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) != 0) {
        why = errno;
        r = why == EINPROGRESS ? wait_for(b, fd, POLLOUT, BORROW_CONNECT_MS) : ERR_IO;
        socklen_t len = sizeof why;
        if (r == 0 && (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &len) != 0 || why))
            r = ERR_IO;
    }
    freeaddrinfo(to);
    *ret = fd;
    if (r == ERR_CANCELED)
        return stopped(b, err);
    if (r == ERR_TIMEOUT)
        return unreachable(b, "nobody answers there", err);
    return fd < 0 || r < 0 ? unreachable(b, strerror(why), err) : 0;
}

// All of it, or an error; *got counts.
static int transfer(const struct borrow *b, int fd, bool out, char *data, size_t len, uint64_t *got, struct err *err)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = out ? send(fd, data + done, len - done, MSG_NOSIGNAL) : recv(fd, data + done, len - done, 0);
        if (n > 0) {
            done += (size_t)n;
            *got += out ? 0 : (uint64_t)n;
            continue;
        }
        if (n == 0)
            return lost(b, *got, "it hung up", err);
        if (errno != EAGAIN && errno != EINTR)
            return lost(b, *got, strerror(errno), err);
        int r = wait_for(b, fd, out ? POLLOUT : POLLIN, BORROW_SILENT_MS);
        if (r == ERR_CANCELED)
            return stopped(b, err);
        if (r < 0)
            return lost(b, *got, "nothing came for half a minute", err);
        if (atomic_load(b->canceled))
            return stopped(b, err);
    }
    return 0;
}

static int refused(const struct borrow *b, int fd, const struct lending_answer *a, struct err *err)
{
    char message[MESSAGE_MAX + 1];
    uint64_t ignored = 0;
    size_t len = (size_t)MIN(a->len, (uint64_t)MESSAGE_MAX);
    int code = a->code <= (uint32_t)-ERR_INTERNAL ? -(int)a->code : ERR_PROTO;
    if (transfer(b, fd, false, message, len, &ignored, err) < 0)
        return err->code;
    message[len] = '\0';
    if (code == ERR_NOT_FOUND)
        return err_set(err, code, "the object of %s is not there any more: %s", b->owner, message);
    return err_set(err, code, "%s does not give the object: %s", b->owner, message);
}

static int ask(const struct borrow *b, int fd, char *out, struct err *err)
{
    char question[LENDING_QUESTION_LEN], head[LENDING_ANSWER_LEN];
    struct lending_question q = {.id = b->id, .until = b->until};
    struct lending_answer a;
    uint64_t got = 0;
    memcpy(q.key, b->key, sizeof q.key);
    lending_question_write(&q, question);
    int r = transfer(b, fd, true, question, sizeof question, &got, err);
    if (r == 0)
        r = transfer(b, fd, false, head, sizeof head, &got, err);
    if (r < 0)
        return r;
    got = 0;
    if (lending_answer_read(head, &a) < 0)
        return unreachable(b, "somebody else listens there", err);
    if (a.code)
        return refused(b, fd, &a, err);
    if (a.len != b->bytes)
        return err_set(err, ERR_INVALID, "the object of %s has %" PRIu64 " bytes, and %" PRIu64 " by its reference",
                       b->owner, a.len, b->bytes);
    return transfer(b, fd, false, out, (size_t)a.len, &got, err);
}

int borrow(const struct borrow *b, char *out, struct err *err)
{
    int fd = -1, r = dial(b, &fd, err);
    if (r == 0)
        r = ask(b, fd, out, err);
    if (fd >= 0)
        close(fd);
    return r;
}
