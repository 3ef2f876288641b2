// SPDX-License-Identifier: Apache-2.0
// Connections wait here until the first line of their request is there; with TLS, until they begin a handshake.
// libwebsockets keeps connections without a request in lists, and walks these lists for each new one. So thousands of
// silent connections would stop the loop. Here, a silent connection costs a descriptor and a few bytes, and is in no
// list that is walked. A connection that waits for too long, or takes the place of others, is dropped, oldest first. A
// client sends its request at once, so the connections that have been silent longest are the least likely to send one.
//
// libwebsockets decodes a path, takes "/../" out of it, and does not report what was sent. So this module reads the
// line first, and leaves it in place: in the socket, or, after a handshake with TLS, in the OpenSSL object. A client
// sends the line in one piece; over TLS, it must be in one record.
//
// The answer to the first message of a handshake takes half a millisecond, so only a few are answered in a turn of the
// loop. The connection waits here until all of this message is there. Otherwise, a client could send all but the last
// byte on hundreds of connections, and then all last bytes at once. If the server asks for another key, the client
// sends the message again. OpenSSL then has the connection already, and it cannot wait. So all but a few of these are
// refused in each turn.
//
// Before there is a request, libwebsockets reads a connection only when it is told to. Otherwise, it would
// read, or end, all connections with something to read in one turn. Each takes 15 to 60 us: 50 ms for a thousand that
// hang up together.
#include "common/ws/ws_preread.h"

#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/wire/request_line.h"
#include "common/ws/ws_connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BUCKETS = 256, // addresses are hashed into these
    READY_MAX = 64,
    WAITING_MAX = 4096,
    WITHOUT_REQUEST_MAX = 1024,
    RECORD_MAX = 16384, // bytes of a TLS record
    PART = 4,           // a part of all connections, and an address's part of those
    TLS_HEAD = 5,       // bytes of a TLS record: type, version, length
    TURN_WORK = 64,     // for one turn, 2 ms at most:
    HELLO_WORK = 32,    // the first message of a handshake
    REQUEST_WORK = 16,  // or the last one
    PIECE_WORK = 4,     // any other data before the request, or the end
    SECOND_HELLOS = 2,  // in one turn
    NEW_KEYS = 8,       // in one turn, of all connections
    LATE_A_TURN = 16,
    REQUEST_TIMES = 3, // times the limit for the first line
};

#define ARRIVES (EPOLLIN | EPOLLRDHUP | EPOLLET) // reports each piece once
#define ADOPTED ((uint64_t)1)                    // set in the data of an event that is about a ws_connection

struct ws_preread {
    struct ws_server *server;
    int epoll;
    struct loop_poll *poll;
    struct loop_timer *late;
    struct loop_timer *again;            // armed while some of `ready` wait for the next turn
    struct epoll_event ready[READY_MAX]; // events of this turn, from `at` up to n_ready; 0: the connection has ended
    int at, n_ready;
    int left, second_hellos, new_keys; // what is left of this turn's budget
    struct list waiting, of[BUCKETS];  // oldest first
    unsigned n, n_of[BUCKETS];
};

struct waiting_socket {
    struct list link, same;
    struct ws_listener *listener;
    int fd;
    unsigned bucket;
    int64_t until_ms;
};

// A part of all connections, but no more than `most`.
static unsigned part_of(const struct ws_server *server, unsigned most)
{
    return MIN(MAX(server->config.max_connections / PART, 1u), most);
}

static int64_t now(const struct ws_preread *p)
{
    return clock_mono_ms(loop_clock(p->server->loop));
}

static void forget(struct ws_preread *p, uint64_t about)
{
    for (int i = p->at; i < p->n_ready; i++)
        if (p->ready[i].data.u64 == about)
            p->ready[i].data.u64 = 0;
}

static int64_t oldest_until(const struct ws_preread *p)
{
    const struct list *adopted = &p->server->without_request;
    int64_t waiting = INT64_MAX, without_request = INT64_MAX;
    if (!list_empty(&p->waiting))
        waiting = CONTAINER_OF(p->waiting.next, struct waiting_socket, link)->until_ms;
    if (!list_empty(adopted))
        without_request = CONTAINER_OF(adopted->next, struct ws_connection, without_request)->until_ms;
    return MIN(waiting, without_request);
}

static void arm(struct ws_preread *p)
{
    int64_t until = oldest_until(p);
    if (until == INT64_MAX)
        loop_timer_disarm(p->late);
    else
        loop_timer_arm(p->late, MAX(until - now(p), (int64_t)0));
}

// Releases the socket to the caller.
static int let_go(struct ws_preread *p, struct waiting_socket *w)
{
    int fd = w->fd;
    forget(p, (uintptr_t)w);
    epoll_ctl(p->epoll, EPOLL_CTL_DEL, fd, NULL);
    list_remove(&w->link);
    list_remove(&w->same);
    p->n--;
    p->n_of[w->bucket]--;
    arm(p);
    free(w);
    return fd;
}

// Ends it by a reset, which leaves nothing in the kernel.
static void drop(struct ws_preread *p, struct waiting_socket *w)
{
    const struct linger at_once = {.l_onoff = 1};
    int fd = let_go(p, w);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
    p->server->counters.turned_away++;
}

bool ws_preread_drop_oldest(struct ws_preread *p)
{
    if (list_empty(&p->waiting))
        return false;
    drop(p, CONTAINER_OF(p->waiting.next, struct waiting_socket, link));
    return true;
}

static void on_late(void *ctx)
{
    struct ws_preread *p = ctx;
    int64_t at = now(p);
    for (int i = 0; i < LATE_A_TURN && oldest_until(p) <= at; i++) {
        struct waiting_socket *oldest = CONTAINER_OF(p->waiting.next, struct waiting_socket, link);
        if (!list_empty(&p->waiting) && oldest->until_ms <= at)
            drop(p, oldest);
        else
            ws_connections_end_oldest(p->server);
    }
    arm(p);
}

// For IPv6, an address is the 64 bits that one owner has.
static unsigned bucket_of(int fd)
{
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } peer = {.in6 = {0}};
    socklen_t len = sizeof peer;
    uint64_t key = 0;
    if (getpeername(fd, &peer.sa, &len) == 0 && peer.sa.sa_family == AF_INET)
        key = peer.in.sin_addr.s_addr;
    else if (peer.sa.sa_family == AF_INET6)
        memcpy(&key, &peer.in6.sin6_addr.s6_addr[IN6_IS_ADDR_V4MAPPED(&peer.in6.sin6_addr) ? 8 : 0], sizeof key);
    return (unsigned)((key * 0x9e3779b97f4a7c15u) >> 56);
}

bool ws_preread_take(struct ws_listener *l, int fd)
{
    struct ws_preread *p = l->server->preread;
    unsigned max = part_of(l->server, WAITING_MAX), bucket = bucket_of(fd);
    if (p->n_of[bucket] >= MAX(max / PART, 1u))
        drop(p, CONTAINER_OF(p->of[bucket].next, struct waiting_socket, same));
    else if (p->n >= max)
        ws_preread_drop_oldest(p);
    struct waiting_socket *w = xcalloc(1, sizeof *w);
    struct epoll_event e = {.events = ARRIVES, .data.u64 = (uintptr_t)w};
    *w = (struct waiting_socket){
        .listener = l, .fd = fd, .bucket = bucket, .until_ms = now(p) + l->server->config.first_line_ms};
    if (epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
        free(w);
        return false;
    }
    list_append(&p->waiting, &w->link);
    list_append(&p->of[bucket], &w->same);
    p->n++;
    p->n_of[bucket]++;
    arm(p);
    return true;
}

// A connection that sends its request slowly, or never ends its TLS handshake, makes room for a new one.
static void make_room(struct ws_server *server)
{
    if (server->n_without_request >= part_of(server, WITHOUT_REQUEST_MAX))
        ws_connections_end_oldest(server);
}

// The first message of a handshake must be in one record.
static enum request_line check_record(const unsigned char *data, size_t len)
{
    if (data[0] != SSL3_RT_HANDSHAKE)
        return REQUEST_LINE_BAD;
    if (len < TLS_HEAD + 4)
        return REQUEST_LINE_MORE;
    const unsigned char *message = data + TLS_HEAD; // type, length in 3 bytes
    size_t record = (size_t)data[3] << 8 | data[4];
    size_t needed = 4 + ((size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3]);
    if (record > RECORD_MAX || needed > record)
        return REQUEST_LINE_BAD;
    return len < TLS_HEAD + record ? REQUEST_LINE_MORE : REQUEST_LINE_GOOD;
}

static enum request_line check(const struct ws_listener *l, const char *text, size_t len)
{
    return l->tls ? check_record((const unsigned char *)text, len) : request_line_check(text, len);
}

// Returns its cost.
static int take(struct ws_preread *p, struct waiting_socket *w, bool ends)
{
    struct ws_listener *l = w->listener;
    char text[TLS_HEAD + RECORD_MAX];
    ssize_t n = recv(w->fd, text, l->tls ? sizeof text : REQUEST_LINE_MAX, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    enum request_line line = n > 0 ? check(l, text, (size_t)n) : REQUEST_LINE_GOOD;
    if (line == REQUEST_LINE_MORE && !ends)
        return 0;
    bool refused = l->tls && line == REQUEST_LINE_BAD;
    int fd = let_go(p, w);
    if (n <= 0 || line == REQUEST_LINE_MORE || refused) {
        p->server->counters.turned_away += refused;
        close(fd);
        return 0;
    }
    make_room(p->server);
    ws_preread_adopt(l, fd, line == REQUEST_LINE_BAD);
    return l->tls ? HELLO_WORK : REQUEST_WORK;
}

// State of connections that libwebsockets has

enum data { OWNER, BEGUN };

static int index_of(enum data what)
{
    static int indices[] = {-1, -1};
    if (indices[what] < 0)
        indices[what] = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    return indices[what];
}

static int on_client_hello(SSL *ssl, int *ret_alert, void *ctx)
{
    struct ws_server *server = ctx;
    bool second = SSL_get_ex_data(ssl, index_of(BEGUN));
    SSL_set_ex_data(ssl, index_of(BEGUN), server);
    if (!second || !server->preread || server->preread->second_hellos-- > 0)
        return SSL_CLIENT_HELLO_SUCCESS;
    server->counters.turned_away++;
    *ret_alert = SSL_AD_INTERNAL_ERROR;
    return SSL_CLIENT_HELLO_ERROR;
}

void ws_preread_watch(struct ws_server *server, SSL_CTX *ctx)
{
    SSL_CTX_set_client_hello_cb(ctx, on_client_hello, server);
}

// After the handshake, libwebsockets would read on at once. This makes it wait.
static void on_handshake(const SSL *ssl, int where, int ret)
{
    struct ws_connection *c = SSL_get_ex_data(ssl, index_of(OWNER));
    (void)ret;
    if (!(where & SSL_CB_HANDSHAKE_DONE) || c->stage != WS_HANDSHAKE)
        return;
    c->stage = WS_FIRST_LINE;
    lws_rx_flow_control(c->wsi, 0);
}

// After the handshake, a client may ask for new keys (KeyUpdate), or for another handshake, which it does not get.
// OpenSSL handles all such messages that have come in one read, and a megabyte of them takes it a second. An honest
// client asks for new keys after about 100 GB. So a connection with many of them is cut off: OpenSSL then treats the
// bytes that follow as bytes after the end.
static void on_record(int sent, int version, int type, const void *data, size_t len, SSL *ssl, void *ctx)
{
    struct ws_connection *c = SSL_get_ex_data(ssl, index_of(OWNER));
    (void)version, (void)ctx;
    bool head = type == SSL3_RT_HEADER || type == SSL3_RT_INNER_CONTENT_TYPE; // of TLS 1.2, of TLS 1.3
    bool of_handshake = head && len && *(const unsigned char *)data == SSL3_RT_HANDSHAKE;
    if (sent || !of_handshake || c->stage == WS_HANDSHAKE)
        return;
    struct ws_preread *p = c->server->preread;
    if (p && p->new_keys-- > 0)
        return;
    c->server->counters.over_limit++;
    SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}

// If the client's answer comes before OpenSSL looks for it, the handshake is done already.
static void expect(struct ws_connection *c, SSL *ssl)
{
    SSL_set_ex_data(ssl, index_of(OWNER), c);
    SSL_set_info_callback(ssl, on_handshake);
    SSL_set_msg_callback(ssl, on_record);
    if (SSL_is_init_finished(ssl))
        c->stage = WS_FIRST_LINE;
}

static void watch(struct ws_preread *p, struct ws_connection *c, int op)
{
    struct epoll_event e = {.events = ARRIVES, .data.u64 = (uintptr_t)c | ADOPTED};
    if (!p || epoll_ctl(p->epoll, op, c->fd, &e) < 0) // the server ends, or the kernel has no room
        shutdown(c->fd, SHUT_RDWR);
}

void ws_preread_adopt(struct ws_listener *l, int fd, bool refused)
{
    struct ws_preread *p = l->server->preread;
    struct ws_connection *c = ws_connection_adopt(l, fd, l->tls ? WS_HANDSHAKE : WS_HEAD);
    if (!c)
        return;
    c->refused = refused;
    c->until_ms = clock_mono_ms(loop_clock(l->server->loop)) + l->server->config.first_line_ms * REQUEST_TIMES;
    if (l->tls)
        expect(c, lws_get_ssl(c->wsi));
    lws_rx_flow_control(c->wsi, 0);
    watch(p, c, EPOLL_CTL_ADD);
    if (p)
        arm(p);
}

void ws_preread_forget(struct ws_connection *c)
{
    if (!c->server->preread)
        return;
    forget(c->server->preread, (uintptr_t)c | ADOPTED);
    arm(c->server->preread); // for the next one without a request; if there is none, the timer stops, so an idle
                             // process sleeps
}

// This may end the connection.
static void serve(const struct ws_preread *p, struct ws_connection *c)
{
    lws_service_fd(p->server->context, &(struct lws_pollfd){.fd = c->fd, .events = LWS_POLLIN, .revents = LWS_POLLIN});
}

// The kernel also reports bytes that have come meanwhile.
static void wait_again(struct ws_preread *p, struct ws_connection *c)
{
    lws_rx_flow_control(c->wsi, 0);
    watch(p, c, EPOLL_CTL_MOD);
}

// Returns how many bytes can be read, and leaves them in place. 0 = nothing now, below 0 = nothing will come.
static ssize_t peek(const struct ws_connection *c, char text[RECORD_MAX])
{
    SSL *ssl = lws_get_ssl(c->wsi);
    if (!ssl) {
        ssize_t n = recv(c->fd, text, RECORD_MAX, MSG_PEEK | MSG_DONTWAIT);
        bool none = n < 0 && (errno == EAGAIN || errno == EINTR);
        return n > 0 ? n : none - 1;
    }
    ERR_clear_error();
    int n = SSL_peek(ssl, text, RECORD_MAX);
    int why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl, n);
    ERR_clear_error(); // libwebsockets looks at the same queue of errors
    bool none = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
    return n > 0 ? n : none - 1;
}

// Whether bytes follow the head of the request. `text` is the next piece of the request.
static bool has_more_than_a_head(struct ws_connection *c, const char *text, size_t len)
{
    static const char end[] = "\r\n\r\n";
    size_t i = 0;
    for (; i < len && end[c->line_ends]; i++)
        c->line_ends = text[i] == end[c->line_ends] ? c->line_ends + 1u : text[i] == '\r';
    return i < len;
}

// libwebsockets takes all bytes that were read, and keeps those after the request. It is served once more for these
// bytes, and not again: the first service may have sent the answer, and the client's next bytes are then its first
// frame, which libwebsockets must not read. The connection may have ended in between.
static int read_piece(struct ws_preread *p, struct ws_connection *c, const struct epoll_event *e)
{
    char text[RECORD_MAX];
    ssize_t n = peek(c, text);
    if (n == 0)
        return 0;
    size_t len = n > 0 ? (size_t)n : 0;
    int fd = c->fd;
    if (c->stage == WS_FIRST_LINE) {
        c->refused = len && request_line_check(text, MIN(len, (size_t)REQUEST_LINE_MAX)) != REQUEST_LINE_GOOD;
        c->stage = WS_HEAD;
    }
    bool more = has_more_than_a_head(c, text, len);
    lws_rx_flow_control(c->wsi, 1);
    serve(p, c);
    if (e->data.u64 && more)
        serve(p, c);
    if (!e->data.u64)
        return PIECE_WORK;
    if (c->stage == WS_HEAD && len) {
        wait_again(p, c);
        return PIECE_WORK;
    }
    epoll_ctl(p->epoll, EPOLL_CTL_DEL, fd, NULL); // it has a request, or libwebsockets ends it
    arm(p);
    return REQUEST_WORK;
}

static int shake_hands(struct ws_preread *p, struct ws_connection *c, const struct epoll_event *e)
{
    lws_rx_flow_control(c->wsi, 1);
    serve(p, c);
    if (!e->data.u64)
        return PIECE_WORK;
    wait_again(p, c);
    return REQUEST_WORK;
}

// Returns its cost.
static int on_event(struct ws_preread *p, const struct epoll_event *e)
{
    void *about = (void *)(uintptr_t)(e->data.u64 & ~ADOPTED);
    if (!about)
        return 0;
    if (!(e->data.u64 & ADOPTED))
        return take(p, about, e->events & (EPOLLRDHUP | EPOLLHUP));
    struct ws_connection *c = about;
    return c->stage == WS_HANDSHAKE ? shake_hands(p, c, e) : read_piece(p, c, e);
}

// The kernel reports each piece once, so events that are over this turn's budget stay in the list.
static void go_on(void *ctx)
{
    struct ws_preread *p = ctx;
    for (; p->left > 0 && p->at < p->n_ready; p->at++)
        p->left -= on_event(p, &p->ready[p->at]);
    if (p->at < p->n_ready)
        loop_timer_arm(p->again, 0);
}

static void on_ready(void *ctx, int events)
{
    struct ws_preread *p = ctx;
    (void)events;
    if (p->at < p->n_ready)
        return;
    p->at = 0;
    p->n_ready = epoll_wait(p->epoll, p->ready, READY_MAX, 0);
    go_on(p);
}

void ws_preread_begin(struct ws_server *server)
{
    server->preread->left = TURN_WORK;
    server->preread->second_hellos = SECOND_HELLOS;
    server->preread->new_keys = NEW_KEYS;
}

unsigned ws_preread_count(const struct ws_preread *p)
{
    return p->n;
}

void ws_preread_clear(struct ws_preread *p)
{
    while (ws_preread_drop_oldest(p))
        ;
}

int ws_preread_new(struct ws_server *server, struct err *err)
{
    struct ws_preread *p = server->preread = xcalloc(1, sizeof *p);
    p->server = server;
    list_init(&p->waiting);
    for (size_t i = 0; i < BUCKETS; i++)
        list_init(&p->of[i]);
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (p->epoll < 0)
        return err_set(err, ERR_IO, "no descriptor for the server's new connections: %s", strerror(errno));
    p->poll = loop_poll_read(server->loop, p->epoll, on_ready, p, err);
    p->late = loop_timer_new(server->loop, on_late, p);
    p->again = loop_timer_new(server->loop, go_on, p);
    return p->poll ? 0 : err->code;
}

void ws_preread_free(struct ws_server *server)
{
    struct ws_preread *p = TAKE_PTR(server->preread);
    if (!p)
        return;
    ws_preread_clear(p);
    loop_poll_free(p->poll);
    loop_timer_free(p->late);
    loop_timer_free(p->again);
    file_close(&p->epoll);
    free(p);
}
