// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/listener.h"

#include "common/base/listen_socket.h"
#include "common/base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAUSE_MS = 500 };

struct listener {
    int fd;
    struct loop_poll *poll;
    struct loop_timer *pause; // armed while the process has no free descriptors; otherwise accept() would spin
    void (*accepted)(void *ctx, int fd);
    void *ctx;
};

static void listen_again(void *ctx)
{
    struct listener *l = ctx;
    struct err err = ERR_INIT;
    if (loop_poll_set(l->poll, LOOP_READ, &err) < 0)
        loop_timer_arm(l->pause, PAUSE_MS);
}

static void on_ready(void *ctx, int events)
{
    (void)events;
    struct listener *l = ctx;
    int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        l->accepted(l->ctx, fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        struct err err = ERR_INIT;
        (void)loop_poll_set(l->poll, 0, &err);
        loop_timer_arm(l->pause, PAUSE_MS);
    }
}

int listener_start(struct loop *loop, const char *address, void (*accepted)(void *ctx, int fd), void *ctx,
                   struct listener **ret, struct err *err)
{
    int port, fd = listen_socket_open(address, &port, err);
    if (fd < 0)
        return fd;
    struct listener *l = xcalloc(1, sizeof *l);
    *l = (struct listener){.fd = fd, .accepted = accepted, .ctx = ctx};
    l->poll = loop_poll_read(loop, fd, on_ready, l, err);
    l->pause = loop_timer_new(loop, listen_again, l);
    if (!l->poll) {
        listener_stop(l);
        return err_wrap(err, "cannot listen on %s", address);
    }
    *ret = l;
    return 0;
}

void listener_stop(struct listener *l)
{
    if (!l)
        return;
    loop_poll_free(l->poll);
    loop_timer_free(l->pause);
    close(l->fd);
    free(l);
}
