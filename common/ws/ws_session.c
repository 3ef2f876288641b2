// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_session.h"

#include "common/base/mem.h"
#include "common/ws/memory.h"
#include "common/ws/ws_connection.h"
#include "common/ws/ws_receiver.h"
#include "common/ws/ws_server_state.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define DIRECT_MAX (4 * WS_WAVE) // a wave of short records, with their cost in the queue
#define CLOSE_MS 5000            // to send queued data, and again to get the peer's answer

struct ws_session *ws_session_new(struct ws_connection *c)
{
    struct ws_server *server = c->server;
    struct ws_session *s = xcalloc(1, sizeof *s);
    *s = (struct ws_session){.connection = c,
                             .quota = quota_new(server->config.max_session, server->quota),
                             .close_code = FRAME_CLOSE_ABNORMAL};
    ws_queue_init(&s->queue, server->config.max_queue);
    list_init(&s->pause);
    c->session = s;
    return s;
}

void ws_session_charge(struct ws_session *s, struct quota *quota)
{
    ws_queue_charge(&s->queue, quota);
}

void ws_session_owner(struct ws_session *s, const char *name, unsigned weight)
{
    if (s->receiver)
        ws_receiver_owner(s, name, weight);
}

void *ws_session_user(const struct ws_session *s)
{
    return s->user;
}

void ws_session_set_user(struct ws_session *s, void *user)
{
    s->user = user;
}

const char *ws_session_subprotocol(const struct ws_session *s)
{
    return s->open ? lws_get_protocol(s->connection->wsi)->name : NULL;
}

pid_t ws_session_peer(const struct ws_session *s)
{
    return memory_peer(s->connection->fd);
}

struct quota *ws_session_quota(struct ws_session *s)
{
    return s->quota;
}

static void wake(struct ws_session *s)
{
    if (!s->open || s->cut)
        return;
    s->asked = true;
    lws_callback_on_writable(s->connection->wsi);
}

static int sendable(const struct ws_session *s, struct err *err)
{
    if (s->closing)
        return err_set(err, ERR_GONE, "the session is closed");
    return s->open ? 0 : err_set(err, ERR_UNAVAILABLE, "the session is not open yet");
}

static int queued(struct ws_session *s, int r)
{
    if (r == 0) {
        ws_queue_drained(&s->queue); // notes the high mark
        ws_connections_busy(s->connection->server);
        wake(s);
    }
    return r;
}

int ws_session_record_copy(struct ws_session *s, const struct record_header *h, const void *body, size_t len,
                           struct err *err)
{
    int r = sendable(s, err);
    return r < 0 ? r : queued(s, record_writer_copy(&s->queue.records, h, body, len, err));
}

int ws_session_parts(struct ws_session *s, bool text, struct parts *parts, struct err *err)
{
    int r = sendable(s, err);
    if (r == 0)
        r = ws_queue_parts(&s->queue, text, parts, err);
    parts_done(parts);
    return queued(s, r);
}

size_t ws_session_queued(const struct ws_session *s)
{
    return ws_queue_bytes(&s->queue);
}

struct record_writer *ws_session_records(struct ws_session *s)
{
    return &s->queue.records;
}

static void listen_or_not(struct ws_session *s)
{
    if (s->receiver)
        ws_receiver_watch(s);
}

void ws_session_worked(struct ws_session *s, size_t bytes, size_t least)
{
    s->work += least - MIN(bytes, least);
}

void ws_session_pause(struct ws_session *s)
{
    if (s->paused || s->closing)
        return;
    s->paused = true;
    bool first = list_empty(&s->connection->server->paused);
    list_append(&s->connection->server->paused, &s->pause);
    ws_connections_busy(s->connection->server);
    if (first)
        ws_connections_sweep_next(s->connection->server); // a client whose data is not read gets pongs often
    listen_or_not(s);
}

void ws_session_resume(struct ws_session *s)
{
    if (!s->paused)
        return;
    s->paused = false;
    list_remove(&s->pause);
    listen_or_not(s);
}

static void set_close(struct ws_session *s, unsigned code, const char *reason, size_t len)
{
    s->close_code = code;
    len = MIN(len, sizeof s->close_reason - 1);
    if (len)
        memcpy(s->close_reason, reason, len);
    s->close_reason[len] = '\0';
}

// Without a close frame.
static void hang_up(struct ws_session *s)
{
    s->closing = s->cut = true;
    if (s->receiver)
        ws_receiver_stop(s);
    ws_connection_hang_up(s->connection);
}

// Short data goes out at once. This saves a turn of the loop, and watching the socket for it. If data is long,
// libwebsockets would have to copy the part that the socket does not take.
void ws_session_wake(struct ws_session *s)
{
    bool brief = ws_queue_bytes(&s->queue) <= DIRECT_MAX;
    ws_queue_drained(&s->queue); // notes the high mark
    ws_connections_busy(s->connection->server);
    if (!brief || s->asked || s->closing || !s->open || lws_partial_buffered(s->connection->wsi))
        wake(s);
    else if (ws_session_writable(s) < 0)
        hang_up(s);
}

static void on_close_deadline(void *ctx)
{
    hang_up(ctx);
}

static void arm_deadline(struct ws_session *s)
{
    if (!s->deadline)
        s->deadline = loop_timer_new(s->connection->server->loop, on_close_deadline, s);
    loop_timer_arm(s->deadline, CLOSE_MS);
}

void ws_session_close(struct ws_session *s, unsigned code, const char *reason)
{
    if (s->closing)
        return;
    set_close(s, code, reason ? reason : "", reason ? strlen(reason) : 0);
    ws_session_resume(s); // the peer's close frame must be read
    s->closing = true;
    blob_unref(TAKE_PTR(s->message)); // nobody gets the rest
    if (s->open)
        arm_deadline(s);
    wake(s);
}

static void refuse(struct ws_session *s, unsigned code, const char *reason)
{
    if (s->closing)
        return;
    ws_queue_done(&s->queue);
    ws_session_close(s, code, reason);
    if (code == FRAME_CLOSE_TOO_BIG || code == FRAME_CLOSE_TRY_LATER)
        s->connection->server->counters.over_limit++;
}

// Collects a message for on_message, which is called when the message is whole.
static void collect(struct ws_session *s, const char *data, size_t len, bool end)
{
    const struct ws_server_config *config = &s->connection->server->config;
    if (!config->on_message) {
        refuse(s, FRAME_CLOSE_UNSUPPORTED, s->text ? "text is not spoken here" : "binary is not spoken here");
        return;
    }
    if (!s->message && end) {
        config->on_message(config->ctx, s, &(struct ws_message){.text = s->text, .data = data, .len = len});
        return;
    }
    size_t room = config->message_room;
    if ((!s->message && !(s->message = blob_new(room, s->queue.quota ? s->queue.quota : s->quota))) ||
        !blob_reserve(s->message, len)) {
        refuse(s, FRAME_CLOSE_TRY_LATER, "too much is waiting already");
        return;
    }
    memcpy(s->message->data + s->message->len, data, len);
    s->message->len += len;
    if (!end)
        return;
    struct blob *whole = TAKE_PTR(s->message);
    (void)blob_recharge(whole, s->quota); // the quota may need this room for the results of the message
    config->on_message(config->ctx, s, &(struct ws_message){s->text, whole->data + room, whole->len - room, whole});
    blob_unref(whole);
}

static void on_data(struct ws_session *s, bool text, const char *data, size_t len, bool end)
{
    struct ws_server *server = s->connection->server;
    server->counters.bytes_in += len;
    ws_connections_busy(server);
    if (s->closing)
        return;
    if (!s->in_message) {
        s->in_message = true;
        s->text = text;
        s->message_len = 0;
    }
    if (len > server->config.max_message - s->message_len) {
        refuse(s, FRAME_CLOSE_TOO_BIG, "the message is too long");
        return;
    }
    s->message_len += len;
    if (end) {
        s->in_message = false;
        server->counters.messages_in++;
    } else if (!len) {
        return; // an empty fragment
    }
    if (!s->text && server->config.on_data)
        server->config.on_data(server->config.ctx, s, data, len, end);
    else
        collect(s, data, len, end);
}

// libwebsockets has read the frame together with the request, which RFC 6455 forbids. The receiver reads all later
// frames.
void ws_session_glued(struct ws_session *s)
{
    s->heard = true;
    refuse(s, FRAME_CLOSE_PROTOCOL, "a frame before the answer to the handshake");
}

static void count_chunk(struct ws_server *server, const struct ws_chunk *chunk)
{
    server->counters.messages_out += chunk->fin;
    server->counters.bytes_out += chunk->len;
}

static int write_chunk(struct ws_session *s, const struct ws_chunk *chunk)
{
    struct ws_server *server = s->connection->server;
    int how = chunk->opcode == FRAME_CONTINUATION ? LWS_WRITE_CONTINUATION
              : chunk->opcode == FRAME_TEXT       ? LWS_WRITE_TEXT
                                                  : LWS_WRITE_BINARY;
    if (!chunk->fin)
        how |= LWS_WRITE_NO_FIN;
    count_chunk(server, chunk);
    return lws_write(s->connection->wsi, server->scratch + LWS_PRE, chunk->len, (enum lws_write_protocol)how);
}

// Writes a frame past libwebsockets, which would need all of it in one place. libwebsockets gets the part that the
// socket does not take: it may have control frames of its own to send, and these must come after it.
static int write_gathered(struct ws_session *s, struct gather *g, const struct ws_chunk *chunk)
{
    struct ws_connection *c = s->connection;
    char *payload = (char *)c->server->scratch + LWS_PRE;
    size_t head = frame_header_size(chunk->len, false);
    count_chunk(c->server, chunk);
    frame_header_encode(payload - head, chunk->fin, chunk->opcode, chunk->len, NULL);
    gather_lead(g, head);
    ssize_t n = sendmsg(c->fd, &(struct msghdr){.msg_iov = g->iov, .msg_iovlen = g->n}, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return -1;
    gather_sent(g, n > 0 ? (size_t)n : 0);
    for (; g->len; gather_sent(g, g->iov[g->at].iov_len))
        if (lws_write(c->wsi, g->iov[g->at].iov_base, g->iov[g->at].iov_len, LWS_WRITE_HTTP) < 0)
            return -1;
    return 0;
}

static int write_next(struct ws_session *s, bool *ret_any)
{
    struct ws_server *server = s->connection->server;
    char *out = (char *)server->scratch + LWS_PRE;
    struct ws_chunk chunk;
    if (lws_is_ssl(s->connection->wsi)) {
        *ret_any = ws_queue_fill(&s->queue, out, RECORD_MESSAGE, &chunk);
        return *ret_any ? write_chunk(s, &chunk) : 0;
    }
    struct gather g;
    gather_init(&g);
    *ret_any = ws_queue_gather(&s->queue, out, RECORD_MESSAGE, &g, &chunk);
    int r = *ret_any ? write_gathered(s, &g, &chunk) : 0;
    gather_done(&g);
    return r;
}

// A non-zero return is libwebsockets' own way to close. If it was built for debugging, as Debian's was, it then hangs
// up without a close frame.
static int write_close(struct ws_session *s)
{
    char payload[FRAME_CONTROL_MAX], *out = (char *)s->connection->server->scratch + LWS_PRE;
    size_t len = s->close_code == FRAME_CLOSE_NO_CODE ? 0 : frame_close_encode(payload, s->close_code, s->close_reason);
    size_t head = frame_header_encode(out, true, FRAME_CLOSE, len, NULL);
    memcpy(out + head, payload, len);
    s->told = true;
    arm_deadline(s);
    if (ws_receiver_failed(s))
        wake(s); // when the frame is out
    return lws_write(s->connection->wsi, (unsigned char *)out, head + len, LWS_WRITE_HTTP) < 0 ? -1 : 0; // as it is
}

static int answer_close(struct ws_session *s)
{
    s->answer_due = false;
    s->answered = true;
    wake(s);
    return write_close(s);
}

static int write_pong(struct ws_session *s)
{
    unsigned char *out = s->connection->server->scratch + LWS_PRE;
    s->pong_due = false;
    wake(s);
    if (s->pong_len)
        memcpy(out, s->pong, s->pong_len);
    return lws_write(s->connection->wsi, out, s->pong_len, LWS_WRITE_PONG) < 0 ? -1 : 0;
}

// Writes once in a call: several writes gain nothing, and each could be partial, which libwebsockets would copy.
int ws_session_writable(struct ws_session *s)
{
    struct ws_server *server = s->connection->server;
    struct lws *wsi = s->connection->wsi;
    bool any;
    s->asked = false;
    if (s->cut)
        return 0;
    if (s->answer_due)
        return answer_close(s);
    if (s->answered) { // everything was sent
        hang_up(s);
        return 0;
    }
    if (s->told) {
        if (ws_receiver_failed(s)) // the peer's answer could not be read; the peer must end the connection (7.1.7)
            shutdown(s->connection->fd, SHUT_WR);
        return 0;
    }
    if (s->pong_due)
        return write_pong(s);
    if (s->ping_due) {
        s->ping_due = false;
        wake(s);
        server->scratch[LWS_PRE] = '?'; // libwebsockets does not report the answer to an empty ping
        return lws_write(wsi, server->scratch + LWS_PRE, 1, LWS_WRITE_PING) < 0 ? -1 : 0;
    }
    if (write_next(s, &any) < 0)
        return -1;
    if (!any)
        return s->closing ? write_close(s) : 0;
    s->moved = true;
    if (s->closing || ws_queue_bytes(&s->queue))
        wake(s);
    if (!s->closing && ws_queue_drained(&s->queue) && server->config.on_drained)
        server->config.on_drained(server->config.ctx, s);
    return 0;
}

static void note_close(struct ws_session *s, unsigned code, const char *reason, size_t len)
{
    s->closing = s->told = true;
    set_close(s, code, reason, len);
}

int ws_session_peer_closes(struct ws_session *s, const unsigned char *payload, size_t len)
{
    if (s->told || s->cut)
        return -1; // the answer to our close frame, or bytes that only look like one
    if (len < 2)
        note_close(s, FRAME_CLOSE_NO_CODE, "", 0);
    else
        note_close(s, (unsigned)payload[0] << 8 | payload[1], (const char *)payload + 2, len - 2);
    return 0; // libwebsockets answers
}

static void on_closed(struct ws_session *s, unsigned code, const char *reason, size_t len)
{
    if (s->told) {
        hang_up(s); // the answer to ours
        return;
    }
    note_close(s, code, reason, len);
    s->answer_due = true;
    arm_deadline(s);
    wake(s);
}

static void on_ping(struct ws_session *s, const char *data, size_t len)
{
    if (!s->pong)
        s->pong = xmalloc(FRAME_CONTROL_MAX);
    if (len)
        memcpy(s->pong, data, len);
    s->pong_len = (uint8_t)len;
    if (!s->pong_due) // 5.5.3: only the last ping needs an answer. wake() takes a system call
        wake(s);
    s->pong_due = true;
}

static const struct ws_receiver_events receiver_events = {
    .data = on_data, .ping = on_ping, .closed = on_closed, .refused = refuse, .ended = hang_up};

int ws_session_established(struct ws_session *s)
{
    struct ws_server *server = s->connection->server;
    s->open = s->heard = true;
    server->counters.opened++;
    server->counters.sessions++;
    ws_receiver_new(s, &receiver_events);
    if (s->closing) {
        arm_deadline(s);
        wake(s);
        return 0;
    }
    if (server->config.on_open)
        server->config.on_open(server->config.ctx, s);
    return 0;
}

// A client whose data is not read gets no pong for its pings. A pong that nobody asked for (RFC 6455, 5.5.3) tells it
// that the server is there.
void ws_sessions_show_life(struct ws_server *server)
{
    LIST_FOREACH(l, &server->paused) {
        struct ws_session *s = CONTAINER_OF(l, struct ws_session, pause);
        if (s->open && !s->closing)
            on_ping(s, NULL, 0);
    }
}

void ws_session_end(struct ws_session *s)
{
    struct ws_server *server = s->connection->server;
    s->connection->session = NULL;
    if (s->open)
        server->counters.sessions--;
    s->open = false;
    s->closing = true;
    list_remove(&s->pause);
    ws_receiver_free(s);
    blob_unref(s->message);
    free(s->pong);
    loop_timer_free(s->deadline);
    if (!server->freeing)
        server->config.on_close(server->config.ctx, s, s->close_code, s->close_reason);
    ws_queue_done(&s->queue); // only now, so that its owner has seen what was not sent
    quota_unref(s->quota);
    free(s);
}

static void cut_silent(struct ws_session *s, const char *why)
{
    s->connection->server->counters.silent++;
    set_close(s, FRAME_CLOSE_ABNORMAL, why, strlen(why));
    hang_up(s);
}

// Includes what libwebsockets holds because the socket did not take it. After a close frame, the queue is not sent.
static bool has_unsent(const struct ws_session *s)
{
    return (!s->told && ws_queue_bytes(&s->queue)) || lws_partial_buffered(s->connection->wsi);
}

// A client whose data is not read cannot be heard. But the server sees whether it takes waiting data.
static void sweep_paused(struct ws_session *s)
{
    bool stuck = has_unsent(s) && !s->moved;
    if (stuck && s->stuck)
        cut_silent(s, "it has stopped reading");
    s->stuck = stuck;
    s->moved = false;
}

// Timers run before sockets. After a long turn, bytes that prove the peer alive may still be unread.
static bool has_unread(const struct ws_session *s)
{
    return poll(&(struct pollfd){.fd = s->connection->fd, .events = POLLIN}, 1, 0) > 0;
}

bool ws_session_idle(const struct ws_session *s)
{
    const struct ws_server_config *config = &s->connection->server->config;
    if (!s->open || s->closing)
        return true;
    return !s->paused && !has_unsent(s) && !(config->waits && config->waits(config->ctx, s));
}

void ws_session_sweep(struct ws_session *s)
{
    if (!s->open || s->closing)
        return;
    if (s->heard || s->paused) {
        s->heard = s->pinged = false;
    } else if (!s->pinged) {
        s->pinged = s->ping_due = true;
        wake(s);
    } else if (!has_unread(s)) {
        cut_silent(s, "no answer to a ping");
    }
    if (s->paused)
        sweep_paused(s);
}
