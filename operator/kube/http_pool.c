// SPDX-License-Identifier: Apache-2.0
// libcurl calls back while it works, and callbacks must not call libcurl. So they only arm timers and pollers of the
// loop.
#include "operator/kube/http_pool.h"

#include "common/base/mem.h"

#include <stdlib.h>

// By default, libcurl keeps four connections for each transfer in progress, so a burst would lose its connections.
enum { POOL_CONNECTIONS = 256 };

struct watched { // a socket of libcurl
    struct http_pool *pool;
    struct loop_poll *poll;
    curl_socket_t fd;
};

static void collect(struct http_pool *p)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(p->multi, &left));)
        if (m->msg == CURLMSG_DONE)
            p->done(p, m->easy_handle, m->data.result);
}

static void drive(struct http_pool *p, curl_socket_t fd, int events)
{
    int running;
    p->in_curl = true;
    CURLMcode r = curl_multi_socket_action(p->multi, fd, events, &running);
    p->in_curl = false;
    if (r == CURLM_OK)
        collect(p);
    else
        p->broken(p);
}

static void on_socket(void *ctx, int events)
{
    struct watched *w = ctx;
    drive(w->pool, w->fd,
          ((events & LOOP_READ) ? CURL_CSELECT_IN : 0) | ((events & LOOP_WRITE) ? CURL_CSELECT_OUT : 0));
}

static void on_timer(void *ctx)
{
    drive(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static struct watched *watched_new(struct http_pool *p, curl_socket_t fd)
{
    struct watched *w = xcalloc(1, sizeof *w);
    *w = (struct watched){p, loop_poll_new(p->loop, fd, on_socket, w), fd};
    if (w->poll) {
        curl_multi_assign(p->multi, fd, w); // the one function that callbacks may call
        return w;
    }
    free(w);
    return NULL;
}

static int socket_cb(CURL *easy, curl_socket_t fd, int what, void *pool_ctx, void *socket_ctx)
{
    (void)easy;
    struct watched *w = socket_ctx;
    if (what == CURL_POLL_REMOVE) {
        if (w)
            loop_poll_free(w->poll);
        free(w);
        return 0;
    }
    if (!w && !(w = watched_new(pool_ctx, fd)))
        return -1;
    int events = ((what & CURL_POLL_IN) ? LOOP_READ : 0) | ((what & CURL_POLL_OUT) ? LOOP_WRITE : 0);
    struct err ignored = ERR_INIT; // libcurl learns only that it failed
    return loop_poll_set(w->poll, events, &ignored) == 0 ? 0 : -1;
}

static int timer_cb(CURLM *multi, long ms, void *ctx)
{
    (void)multi;
    struct http_pool *p = ctx;
    if (ms < 0)
        loop_timer_disarm(p->timer);
    else
        loop_timer_arm(p->timer, ms);
    return 0;
}

static void pool_open(struct http_pool *p)
{
    p->multi = curl_multi_init();
    if (!p->multi)
        abort();
    curl_multi_setopt(p->multi, CURLMOPT_SOCKETFUNCTION, socket_cb);
    curl_multi_setopt(p->multi, CURLMOPT_SOCKETDATA, p);
    curl_multi_setopt(p->multi, CURLMOPT_TIMERFUNCTION, timer_cb);
    curl_multi_setopt(p->multi, CURLMOPT_TIMERDATA, p);
    curl_multi_setopt(p->multi, CURLMOPT_MAXCONNECTS, (long)POOL_CONNECTIONS);
}

static void pool_close(struct http_pool *p)
{
    if (p->active || p->in_curl)
        abort();
    curl_multi_cleanup(p->multi);
    loop_timer_disarm(p->timer);
}

void http_pool_init(struct http_pool *p, struct loop *loop)
{
    p->loop = loop;
    p->timer = loop_timer_new(loop, on_timer, p);
    pool_open(p);
}

void http_pool_done(struct http_pool *p)
{
    pool_close(p);
    loop_timer_free(p->timer);
}

void http_pool_drop(struct http_pool *p)
{
    pool_close(p);
    pool_open(p);
}

void http_pool_add(struct http_pool *p, CURL *easy)
{
    if (p->in_curl || curl_multi_add_handle(p->multi, easy) != CURLM_OK)
        abort(); // the handle is in use (a bug), or there is no memory
    p->active++;
}

void http_pool_remove(struct http_pool *p, CURL *easy)
{
    if (p->in_curl)
        abort();
    curl_multi_remove_handle(p->multi, easy);
    p->active--;
}
