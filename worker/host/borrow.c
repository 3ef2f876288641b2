// SPDX-License-Identifier: Apache-2.0
#include "worker/host/borrow.h"

#include "common/base/mem.h"
#include "worker/host/dial.h"
#include "worker/host/lending.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGE_MAX = 512 };

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

static int stopped(const struct borrow *b, struct err *err)
{
    return err_set(err, ERR_CANCELED, "canceled while the object of %s was fetched", b->owner);
}

static int reach(const struct borrow *b, int *ret, struct err *err)
{
    struct err why = ERR_INIT;
    int r = dial(b->at, b->canceled, ret, &why);
    return r == ERR_CANCELED ? stopped(b, err) : r < 0 ? unreachable(b, why.msg, err) : 0;
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
        int r = dial_wait(fd, out ? POLLOUT : POLLIN, BORROW_SILENT_MS, b->canceled);
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
        return err_set(err, code, "%s no longer has the object: %s", b->owner, message);
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
        return unreachable(b, "another program listens there", err);
    if (a.code)
        return refused(b, fd, &a, err);
    if (a.len != b->bytes)
        return err_set(err, ERR_INVALID, "the object of %s has %" PRIu64 " bytes, and %" PRIu64 " by its reference",
                       b->owner, a.len, b->bytes);
    return transfer(b, fd, false, out, (size_t)a.len, &got, err);
}

int borrow(const struct borrow *b, char *out, struct err *err)
{
    int fd = -1, r = reach(b, &fd, err);
    if (r == 0)
        r = ask(b, fd, out, err);
    if (fd >= 0)
        close(fd);
    return r;
}
