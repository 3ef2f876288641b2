// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/relay_link.h"

#include "common/base/mem.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { MARKS_MAX = 4096 };

// *ret: the bytes that have moved, 0 = none can move now.
static int move(int fd, bool out, void *data, size_t len, size_t *ret, struct err *err)
{
    ssize_t n = out ? send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(fd, data, len, MSG_DONTWAIT);
    *ret = n > 0 ? (size_t)n : 0;
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return 0;
    return err_set(err, ERR_GONE, "%s", n == 0 ? "the connection has ended" : strerror(errno));
}

// Sends the first bytes on a connection. It always has room for them.
static int say(int fd, void *data, size_t len, struct err *err)
{
    size_t n;
    int r = move(fd, true, data, len, &n, err);
    return r == 0 && n < len ? err_set(err, ERR_GONE, "the connection takes nothing") : r;
}

int relay_link_show(struct relay_link *l, const struct window_place *place, struct err *err)
{
    window_place_write(place, l->place);
    return say(l->fd, l->place, sizeof l->place, err);
}

int relay_link_hear(struct relay_link *l, struct err *err)
{
    char answer;
    size_t n;
    int r = move(l->fd, false, &answer, 1, &n, err);
    l->answered = n == 1;
    l->reads = n == 1 && answer;
    return r;
}

int relay_link_mark(struct relay_link *l, size_t n, struct err *err)
{
    char marks[MARKS_MAX] = {0};
    size_t some = 1;
    int r = 0;
    for (; r == 0 && some && l->marks < n; l->marks += some)
        r = move(l->fd, true, marks, MIN(n - l->marks, sizeof marks), &some, err);
    return r;
}

int relay_link_look(struct relay_link *l, struct window_place *ret, bool *ret_there, struct err *err)
{
    size_t n;
    int r = move(l->fd, false, l->place + l->len, sizeof l->place - l->len, &n, err);
    l->len += n;
    *ret_there = r == 0 && l->len == sizeof l->place;
    if (*ret_there)
        window_place_read(l->place, ret);
    return r;
}

int relay_link_answer(struct relay_link *l, bool reads, struct err *err)
{
    char answer = reads;
    l->answered = true;
    l->reads = reads;
    return say(l->fd, &answer, 1, err);
}

int relay_link_take(struct relay_link *l, struct err *err)
{
    char marks[MARKS_MAX];
    size_t n;
    int r = move(l->fd, false, marks, sizeof marks, &n, err);
    l->marks += n;
    return r;
}
