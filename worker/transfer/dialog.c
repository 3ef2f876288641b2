// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/dialog.h"

#include "common/base/clock.h"
#include "common/base/le.h"
#include "common/base/mem.h"
#include "worker/collective/star_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FRAME_MS = 30 * 1000 }; // for the rest of a message, or until a member reads a message

static int64_t until(void)
{
    return clock_mono_ms(&clock_system) + FRAME_MS;
}

void dialog_init(struct dialog *c, int n)
{
    *c = (struct dialog){
        .links = xcalloc((size_t)n, sizeof *c->links), .behind = xcalloc((size_t)n, sizeof *c->behind), .n = n};
    for (int i = 0; i < n; i++)
        c->links[i] = -1;
}

static void hang_up(struct dialog *c, int member)
{
    if (c->links[member] >= 0)
        close(c->links[member]);
    c->links[member] = -1;
}

void dialog_done(struct dialog *c)
{
    for (int i = 0; i < c->n; i++)
        hang_up(c, i);
    free(c->links);
    free(c->behind);
    *c = (struct dialog){.n = 0};
}

// Skips a late message of an earlier transfer, or of a member that is in another transfer.
static void skip(struct dialog *c, struct dialog_event *e)
{
    bool comes = e->kind == DIALOG_AGAIN && e->len == 8 && le_get_u64(e->body) == c->number;
    c->behind[e->member] = !comes;
    free(TAKE_PTR(e->body));
    e->kind = DIALOG_AGAIN;
    e->len = 0;
}

static void take(struct dialog *c, int member, struct dialog_event *ret)
{
    struct star_frame f;
    *ret = (struct dialog_event){.member = member};
    if (star_frame_take(c->links[member], &f, &ret->body, until()) == 0) {
        ret->kind = (enum dialog_kind)f.kind;
        ret->len = f.len;
        if (c->behind[member])
            skip(c, ret);
        return;
    }
    free(TAKE_PTR(ret->body));
    hang_up(c, member);
}

bool dialog_next(struct dialog *c, struct pollfd *others, size_t n_others, int timeout_ms, struct dialog_event *ret)
{
    struct pollfd *polled = xcalloc((size_t)c->n + n_others, sizeof *polled);
    int found = -1;
    for (int i = 0; i < c->n; i++)
        polled[i] = (struct pollfd){.fd = c->links[i], .events = POLLIN};
    if (n_others)
        memcpy(polled + c->n, others, n_others * sizeof *others);
    if (poll(polled, (nfds_t)c->n + n_others, timeout_ms) > 0)
        for (int i = 0; i < c->n && found < 0; i++)
            found = polled[i].revents ? i : -1;
    if (n_others)
        memcpy(others, polled + c->n, n_others * sizeof *others);
    free(polled);
    if (found >= 0)
        take(c, found, ret);
    return found >= 0;
}

static bool has_ended(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

int dialog_lost(const struct dialog *c, int but)
{
    for (int i = 0; i < c->n; i++)
        if (i != but && c->links[i] >= 0 && has_ended(c->links[i]))
            return i;
    return -1;
}

void dialog_say(struct dialog *c, int member, enum dialog_kind kind, const void *body, size_t len)
{
    // dialog_next() reports a member that is gone. Nothing may follow a part of a message, so the connection closes.
    if (c->links[member] >= 0 && star_frame_send(c->links[member], kind, body, len, until()) < 0)
        shutdown(c->links[member], SHUT_RDWR);
}

void dialog_again(struct dialog *c, uint64_t number)
{
    char body[8];
    le_put_u64(body, number);
    c->number = number;
    for (int i = 0; i < c->n; i++) {
        c->behind[i] = c->links[i] >= 0;
        dialog_say(c, i, DIALOG_AGAIN, body, sizeof body);
    }
}
