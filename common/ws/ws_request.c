// SPDX-License-Identifier: Apache-2.0
// HTTP requests. One request for each connection: if bytes follow a request whose answer takes time, libwebsockets may
// spin, or fail an assertion.
#include "common/ws/ws_request.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/handshake.h"
#include "common/ws/ws_connection.h"
#include "common/ws/ws_reader.h"
#include "common/ws/ws_server_state.h"
#include "common/ws/ws_session.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PROTOCOLS_MAX 120 // the size of libwebsockets' own buffer for the list

enum {
    FREE_MAX = 4096, // this much of an answer goes out even if no memory is left
    READS_A_TURN = 4,
    ROUNDS_MAX = 180 // an hour, of 20 s, for all of an answer
};

static struct ws_request *request_new(struct ws_connection *c)
{
    struct ws_request *r = xcalloc(1, sizeof *r);
    r->connection = c;
    r->body = BUF_INIT(c->server->config.max_body);
    r->answer = BUF_INIT(SIZE_MAX / 2); // ours, not a peer's
    c->request = r;
    ws_connection_known(c);
    ws_connections_busy(c->server);
    return r;
}

void ws_request_drop_body(struct ws_request *r)
{
    quota_refund(r->payer ? r->payer : r->connection->server->bodies, r->body_charged);
    r->body_charged = 0;
    buf_done(&r->body);
}

bool ws_request_charge(struct ws_request *r, struct quota *quota)
{
    if (!quota_charge(quota, r->want))
        return false;
    quota_refund(r->connection->server->bodies, r->body_charged);
    r->body_charged = r->want;
    r->payer = quota_ref(quota);
    return true;
}

void ws_request_on_end(struct ws_request *r, void (*ended)(void *ctx), void *ctx)
{
    r->ended = ended;
    r->ended_ctx = ctx;
}

static void request_free(struct ws_request *r)
{
    r->connection->request = NULL;
    if (r->reader)
        ws_reader_done(r->reader);
    free(r->reader);
    ws_request_drop_body(r);
    quota_refund(r->payer ? r->payer : r->connection->server->quota, r->answer_charged);
    quota_unref(r->payer);
    buf_done(&r->answer);
    parts_done(&r->rest);
    arena_done(&r->arena);
    if (r->ended)
        r->ended(r->ended_ctx);
    free(r);
}

void ws_request_for(struct ws_request *r, const char *name, unsigned weight)
{
    if (r->reader)
        ws_reader_owner(r->reader, name, weight);
}

// Its owner need not answer any more.
static void disown(struct ws_request *r)
{
    void (*gone)(void *ctx, struct ws_request *r) = TAKE_PTR(r->gone);
    if (gone)
        gone(r->gone_ctx, r);
}

void ws_request_end(struct ws_request *r)
{
    if (!r->answered && !r->connection->server->freeing)
        disown(r);
    request_free(r);
}

static const char *token_value(struct ws_request *r, enum lws_token_indexes token)
{
    struct lws *wsi = r->connection->wsi;
    int len = lws_hdr_total_length(wsi, token);
    if (len <= 0)
        return NULL;
    char *value = arena_alloc(&r->arena, (size_t)len + 32); // joining its pieces takes more memory than is counted
    return lws_hdr_copy(wsi, value, len + 32, token) < 0 ? NULL : value;
}

// libwebsockets keeps the headers that it knows apart from all others. These are the ones that this server asks for.
static enum lws_token_indexes known_token(const char *name)
{
    static const struct {
        const char *name;
        enum lws_token_indexes token;
    } known[] = {
        {"authorization", WSI_TOKEN_HTTP_AUTHORIZATION},
        {"host", WSI_TOKEN_HOST},
        {"origin", WSI_TOKEN_ORIGIN},
        {"content-type", WSI_TOKEN_HTTP_CONTENT_TYPE},
        {"content-length", WSI_TOKEN_HTTP_CONTENT_LENGTH},
        {"transfer-encoding", WSI_TOKEN_HTTP_TRANSFER_ENCODING},
        {"expect", WSI_TOKEN_HTTP_EXPECT},
        {"sec-websocket-protocol", WSI_TOKEN_PROTOCOL},
        {"sec-websocket-version", WSI_TOKEN_VERSION},
        {"sec-websocket-key", WSI_TOKEN_KEY},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (str_eq(known[i].name, name))
            return known[i].token;
    return WSI_TOKEN_COUNT;
}

const char *ws_request_header(struct ws_request *r, const char *name)
{
    struct lws *wsi = r->connection->wsi;
    enum lws_token_indexes token = known_token(name);
    if (token != WSI_TOKEN_COUNT)
        return token_value(r, token);
    const char *key = arena_printf(&r->arena, "%s:", name);
    int key_len = (int)strlen(key), len = lws_hdr_custom_length(wsi, key, key_len);
    if (len < 0)
        return NULL;
    char *value = arena_alloc(&r->arena, (size_t)len + 1);
    return lws_hdr_custom_copy(wsi, value, len + 1, key, key_len) < 0 ? NULL : value;
}

const char *ws_request_method(const struct ws_request *r)
{
    return r->method;
}

const char *ws_request_path(const struct ws_request *r)
{
    return r->path;
}

const char *ws_request_peer(struct ws_request *r)
{
    char *name = arena_alloc(&r->arena, 64);
    return lws_get_peer_simple(r->connection->wsi, name, 64) ? name : "";
}

bool ws_request_is_unix(const struct ws_request *r)
{
    return r->connection->is_unix;
}

const char *ws_request_body(const struct ws_request *r, size_t *ret_len)
{
    *ret_len = r->body.len;
    return buf_str(&r->body);
}

void ws_request_on_gone(struct ws_request *r, void (*gone)(void *ctx, struct ws_request *r), void *ctx)
{
    r->gone = gone;
    r->gone_ctx = ctx;
}

void *ws_request_owner(const struct ws_request *r)
{
    return r->gone_ctx;
}

// False for a method that the server does not support.
static bool read_line(struct ws_request *r)
{
    char *path = NULL;
    int len = 0, method = lws_http_get_uri_and_method(r->connection->wsi, &path, &len);
    r->method = method == LWSHUMETH_GET ? "GET" : method == LWSHUMETH_POST ? "POST" : "";
    r->path = path && len > 0 ? arena_strndup(&r->arena, path, (size_t)len) : "/";
    return r->method[0];
}

static const char too_long[] = "a header of the request is too long: a token may have 16 KiB\n";

static bool header_too_long(const struct ws_connection *c)
{
    for (int i = 0; i < WSI_TOKEN_COUNT; i++)
        if (lws_hdr_total_length(c->wsi, (enum lws_token_indexes)i) >= WS_HEADER_MAX)
            return true;
    return false;
}

// Upgrades

static int send_now(struct ws_connection *c, const struct buf *text, enum lws_write_protocol how)
{
    _cleanup_(free_p) unsigned char *out = xmalloc(LWS_PRE + text->len);
    memcpy(out + LWS_PRE, text->data, text->len);
    return lws_write(c->wsi, out + LWS_PRE, text->len, how);
}

static int upgrade_refuse(struct ws_request *r, const struct err *err)
{
    struct ws_connection *c = r->connection;
    _cleanup_(buf_done) struct buf text = BUF_INIT(4096);
    handshake_refuse_write(&text, err->http_status ? err->http_status : 403, err->msg);
    send_now(c, &text, LWS_WRITE_HTTP_FINAL);
    c->server->counters.refused++;
    request_free(r);
    return -1; // libwebsockets sends the rest, then closes
}

static int bad(struct err *err, int status, const char *what)
{
    err->http_status = status;
    return err_set(err, ERR_PROTO, "%s", what);
}

static const char no_path[] = "the path of a request has no %, no empty segments, and none of \".\" or \"..\"\n";

static int upgrade_check(struct ws_request *r, struct err *err)
{
    const char *version = ws_request_header(r, "sec-websocket-version"),
               *key = ws_request_header(r, "sec-websocket-key");
    const char *offered = ws_request_header(r, "sec-websocket-protocol");
    char http[16] = "";
    lws_hdr_copy(r->connection->wsi, http, sizeof http, WSI_TOKEN_HTTP);
    if (r->connection->refused)
        return bad(err, 400, no_path);
    if (!str_starts(http, "HTTP/1.1"))
        return bad(err, 400, "a websocket handshake needs HTTP/1.1");
    if (!str_eq(r->method, "GET") || !key || strlen(key) != HANDSHAKE_KEY_SIZE - 1 || !ws_request_header(r, "host"))
        return bad(err, 400, "not a websocket handshake");
    if (!str_eq(version, "13"))
        return bad(err, 426, "only version 13 of websocket is spoken here");
    if (offered && strlen(offered) > PROTOCOLS_MAX)
        return bad(err, 400, "too many subprotocols are offered");
    for (const char *const *name = r->connection->server->config.subprotocols; *name; name++)
        if (handshake_offers(offered, *name))
            return 0;
    const char *names = "";
    for (const char *const *name = r->connection->server->config.subprotocols; *name; name++)
        names = arena_printf(&r->arena, "%s%s%s", names, names[0] ? " or " : "", *name);
    return bad(err, 426, arena_printf(&r->arena, "offer the subprotocol %s", names));
}

int ws_request_upgrade(struct ws_connection *c, const char *protocol)
{
    struct err err = ERR_INIT;
    const struct ws_server_config *config = &c->server->config;
    if (strcasecmp(protocol, "websocket") != 0 || c->session || c->request)
        return -1; // h2c among others
    struct ws_request *r = request_new(c);
    read_line(r);
    if (header_too_long(c)) {
        bad(&err, 431, too_long);
        return upgrade_refuse(r, &err);
    }
    if (upgrade_check(r, &err) < 0)
        return upgrade_refuse(r, &err);
    struct ws_session *s = ws_session_new(c);
    if (config->on_upgrade(config->ctx, s, r, &err) < 0) {
        c->session = NULL;
        ws_queue_done(&s->queue);
        quota_unref(s->quota);
        free(s);
        return upgrade_refuse(r, &err);
    }
    request_free(r);
    return 0;
}

// Requests

static void hand_over(struct ws_request *r)
{
    struct ws_connection *c = r->connection;
    const struct ws_server_config *config = &c->server->config;
    r->handed_over = true;
    c->server->counters.requests++;
    lws_set_timeout(c->wsi, NO_PENDING_TIMEOUT, 0);
    if (r->reader)
        ws_reader_leave(r->reader);
    lws_rx_flow_control(c->wsi, 0); // nothing more is read from it; reading is on again when there is an answer
    if (config->on_http)
        config->on_http(config->ctx, r);
    else
        ws_request_respond(r, 404, "text/plain", NULL, "not found\n", 10);
}

static int answer_short(struct ws_request *r, int status, const char *text)
{
    disown(r);
    r->handed_over = true;
    ws_request_respond(r, status, "text/plain", NULL, text, strlen(text));
    return 0;
}

// curl, for example, waits for it before it sends a long body.
static bool expects_word(struct ws_request *r)
{
    const char *value = ws_request_header(r, "expect");
    return value && strcasecmp(value, "100-continue") == 0;
}

static int send_word(struct ws_connection *c)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(64);
    buf_puts(&text, "HTTP/1.1 100 Continue\r\n\r\n");
    int r = send_now(c, &text, LWS_WRITE_HTTP_HEADERS_CONTINUATION);
    return r < 0 ? -1 : 0;
}

// The connection is of no use any more.
static void hang_up(struct ws_request *r)
{
    ws_reader_leave(r->reader);
    ws_connection_hang_up(r->connection);
}

static void unwatched(struct ws_reader *r)
{
    hang_up(r->connection->request);
}

// Reads the bytes of the body that came after libwebsockets read the head.
static size_t read_body(struct ws_reader *reader, bool alone)
{
    struct ws_connection *c = reader->connection;
    struct ws_request *r = c->request;
    size_t bytes = 0;
    (void)alone;
    for (int i = 0; i < READS_A_TURN && reader->wanted; i++) {
        struct iovec into[2] = {{NULL, 0},
                                {c->server->read_buf, MIN(r->want - r->body.len, c->server->config.read_size)}};
        ssize_t n = ws_reader_read(reader, into);
        if (n < 0 || (n > 0 && ws_request_piece(c, into[1].iov_base, (size_t)n) < 0))
            hang_up(r);
        if (n <= 0)
            break;
        bytes += (size_t)n;
        if (r->body.len == r->want)
            ws_request_complete(c);
    }
    return bytes;
}

static int take_head(struct ws_request *r)
{
    struct ws_connection *c = r->connection;
    const struct ws_server_config *config = &c->server->config;
    r->reader = xcalloc(1, sizeof *r->reader);
    ws_reader_init(r->reader, c, read_body, unwatched);
    r->held_up = config->on_head && config->on_head(config->ctx, r) > 0;
    if (r->answered || r->held_up)
        return 0;
    ws_reader_want(r->reader, true);
    return expects_word(r) ? send_word(c) : 0;
}

void ws_request_read(struct ws_request *r)
{
    if (!r->held_up || r->handed_over)
        return;
    r->held_up = false;
    ws_reader_want(r->reader, true);
    if (r->body.len < r->want && expects_word(r) && send_word(r->connection) < 0)
        hang_up(r);
}

int ws_request_begin(struct ws_connection *c)
{
    int64_t length = 0;
    if (c->request || c->session)
        return -1;
    struct ws_request *r = request_new(c);
    if (header_too_long(c))
        return answer_short(r, 431, too_long);
    if (c->refused)
        return answer_short(r, 400, no_path);
    if (!read_line(r))
        return answer_short(r, 405, "only GET and POST are supported\n");
    const char *given = ws_request_header(r, "content-length");
    bool valid = given && str_to_i64(given, &length) && length >= 0;
    if (str_eq(r->method, "GET") && !given) {
        hand_over(r);
        return 0;
    }
    if (!valid || str_eq(r->method, "GET") || ws_request_header(r, "transfer-encoding"))
        return answer_short(r, given ? 400 : 411,
                            "a POST needs a Content-Length and must not be chunked; other requests have no body\n");
    if ((uint64_t)length > r->body.cap)
        return answer_short(r, 413, "the request is too long\n");
    r->want = (size_t)length;
    return take_head(r);
}

int ws_request_piece(struct ws_connection *c, const void *data, size_t len)
{
    struct ws_request *r = c->request;
    if (!r || r->handed_over)
        return 0;
    if (len > r->want - r->body.len)
        return -1;
    if (!r->payer && !quota_charge(c->server->bodies, len)) {
        c->server->counters.over_limit++;
        return answer_short(r, 503, "too many requests are coming in; try again\n");
    }
    r->body_charged += r->payer ? 0 : len;
    return buf_append(&r->body, data, len) < 0 ? -1 : 0;
}

int ws_request_complete(struct ws_connection *c)
{
    struct ws_request *r = c->request;
    if (r && !r->handed_over)
        hand_over(r);
    return 0;
}

static const char *status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {
        {200, "OK"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].status == status)
            return texts[i].text;
    return status < 400 ? "Done" : "Failed";
}

static const char no_room[] = "the call ran, but there is no memory for the answer\n";

static void write_head(struct ws_request *r, int status, const char *content_type, const char *extra_headers,
                       size_t len)
{
    r->handed_over = r->answered = true;
    buf_printf(&r->answer, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n%s\r\n",
               status, status_text(status), content_type, len, extra_headers ? extra_headers : "");
}

static bool charge_answer(struct ws_request *r, size_t len)
{
    if (quota_charge(r->payer ? r->payer : r->connection->server->quota, len)) {
        r->answer_charged = len;
        return true;
    }
    r->connection->server->counters.over_limit += len > FREE_MAX;
    return len <= FREE_MAX;
}

static void begin_answer(struct ws_request *r)
{
    ws_request_drop_body(r); // the answer may be in the body
    if (r->reader)
        ws_reader_leave(r->reader);
    lws_rx_flow_control(r->connection->wsi, 1); // libwebsockets does not write while it does not read
    lws_callback_on_writable(r->connection->wsi);
}

void ws_request_respond(struct ws_request *r, int status, const char *content_type, const char *extra_headers,
                        const void *body, size_t len)
{
    if (r->answered)
        abort(); // answered twice
    bool charged = charge_answer(r, len);
    if (!charged) {
        body = no_room;
        len = sizeof no_room - 1;
    }
    write_head(r, charged ? status : 503, charged ? content_type : "text/plain", charged ? extra_headers : NULL, len);
    buf_append(&r->answer, body, len);
    begin_answer(r);
}

void ws_request_respond_parts(struct ws_request *r, int status, const char *content_type, struct parts *body)
{
    if (r->answered)
        abort(); // answered twice
    if (charge_answer(r, parts_uncharged(body))) {
        write_head(r, status, content_type, NULL, body->len);
        parts_move(&r->rest, body);
        begin_answer(r);
    } else {
        parts_done(body);
        ws_request_respond(r, 503, "text/plain", NULL, no_room, sizeof no_room - 1);
    }
}

static size_t fill(struct ws_request *r, char *out, size_t size)
{
    size_t n = MIN(r->answer.len - MIN(r->sent, r->answer.len), size);
    if (n)
        memcpy(out, r->answer.data + r->sent, n);
    return n + parts_read(&r->rest, out + n, size - n);
}

int ws_request_writable(struct ws_connection *c)
{
    struct ws_request *r = c->request;
    if (!r || !r->answered)
        return 0;
    // This ends the timeout for more of the body: libwebsockets takes bytes after the request for that.
    lws_set_timeout(c->wsi, NO_PENDING_TIMEOUT, 0);
    size_t n = fill(r, (char *)c->server->scratch + LWS_PRE, RECORD_MESSAGE);
    r->sent += n;
    if (lws_write(c->wsi, c->server->scratch + LWS_PRE, n, LWS_WRITE_HTTP) < 0)
        return -1;
    c->server->counters.bytes_out += n;
    if (r->sent == r->answer.len + r->rest.len)
        return -1; // libwebsockets sends the rest, then closes
    lws_callback_on_writable(c->wsi);
    return 0;
}

static bool has_hung_up(const struct ws_request *r)
{
    struct pollfd p = {.fd = lws_get_socket_fd(r->connection->wsi), .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

// Ends a request that takes too long to come in, or whose answer takes too long to be read. The owner decides how long
// an answer may take.
void ws_request_sweep(struct ws_request *r)
{
    if (r->handed_over && !r->answered) {
        if (has_hung_up(r))
            answer_short(r, 408, "");
        return;
    }
    if (r->answered && r->sent != r->swept)
        r->sweeps = 0;
    r->swept = r->sent;
    r->rounds += r->answered;
    if (++r->sweeps <= 2 && r->rounds <= ROUNDS_MAX)
        return;
    r->connection->server->counters.silent++;
    if (!r->answered)
        answer_short(r, 408, "the request did not come in time\n");
    else
        ws_connection_hang_up(r->connection);
}
