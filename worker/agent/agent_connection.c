// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/agent_connection.h"

#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/wire/archive_piece.h"
#include "common/wire/error_body.h"
#include "common/wire/record_reader.h"
#include "common/ws/ws_client.h"
#include "common/ws/ws_replicas.h"
#include "worker/agent/agent_listen.h"
#include "worker/agent/message.h"
#include "worker/agent/pod_archives.h"

#include <stdlib.h>
#include <string.h>

enum {
    TOKEN_MAX = 16 * 1024,
    BODY_MAX = 8 * 1024 * 1024, // of a command; it may contain the environments of many ranks
    QUEUE_MAX = 16 * 1024 * 1024,
    PING_MS = 10 * 1000, // the kernel sends no keepalive while a heartbeat waits for its acknowledgement
};

struct agent_connection {
    struct agent_connection_config config;
    char *address;
    struct ws_client *client; // NULL while waiting for the next attempt
    struct record_reader reader;
    struct loop_timer *retry_timer, *heartbeat_timer, *output_timer;
    struct listen listen;
    int64_t backoff_ms, heartbeat_ms;
    uint64_t gpus_told;     // probe_version() of the last news that was sent; 0 = send again
    uint64_t archives_told; // the same for pod_archives_version()
    bool up, closing, leaving;
    bool hello_sent;  // HELLO is sent: it does not contain what happens from now on
    int told;         // the error code of the loss that is in the log already; 0 = none
    bool asked_again; // it was told to come back soon: the operator's view of the cluster is not up to date yet
};

static void say(struct agent_connection *c, const char *what, const char *why)
{
    rank_output_say(agent_output(c->config.agent), "operator at %s: %s%s%s", c->address, what, why[0] ? ": " : "", why);
}

static bool is_refusal(int code)
{
    return code == ERR_UNAUTHORIZED || code == ERR_FORBIDDEN;
}

static void retry_later(struct agent_connection *c, const struct err *err)
{
    bool was_up = c->up;
    c->up = false;
    if (c->closing)
        return;
    // One line is enough for a network that comes and goes. But somebody has to act if a certificate is not trusted.
    if (!c->told || (err->code == ERR_FORBIDDEN && c->told != err->code)) {
        say(c, was_up ? "lost, trying again" : "not reached, trying again", err->code ? err->msg : "it closed");
        c->told = err->code ? err->code : ERR_GONE;
    }
    loop_timer_disarm(c->heartbeat_timer);
    loop_timer_arm(c->retry_timer, rand_range(c->config.rand, c->backoff_ms / 3, c->backoff_ms));
    bool refused = is_refusal(err->code) || is_refusal(c->told);
    c->backoff_ms =
        MIN(2 * c->backoff_ms, (int64_t)(refused ? AGENT_CONNECTION_REFUSED_MAX_MS : AGENT_CONNECTION_RETRY_MAX_MS));
    if (was_up)
        c->config.lost(c->config.lost_ctx);
}

static void drop(struct agent_connection *c, const struct err *err)
{
    c->hello_sent = false;
    loop_timer_disarm(c->output_timer);
    listen_done(&c->listen); // the operator asks again for what it wants
    ws_client_free(TAKE_PTR(c->client));
    record_reader_done(&c->reader);
    retry_later(c, err);
}

static int send_body(struct agent_connection *c, enum record_type type, struct json_writer *w, struct err *err)
{
    const struct record_header h = {.type = (uint8_t)type, .rank = RECORD_GROUP};
    int r = ws_client_record_copy(c->client, &h, buf_str(&w->buf), w->buf.len, err);
    writer_done(w);
    return r;
}

static void send_or_drop(struct agent_connection *c, enum record_type type, struct json_writer *w)
{
    struct err err = ERR_INIT;
    if (send_body(c, type, w, &err) < 0) // it does not read: the next HELLO tells it everything
        drop(c, &err);
}

static void on_heartbeat(void *ctx)
{
    struct agent_connection *c = ctx;
    struct json_writer w;
    const struct pod_archives *pod_archives = agent_pod_archives(c->config.agent);
    uint64_t gpus = probe_version(c->config.gpus), archives = pod_archives_version(pod_archives);
    message_heartbeat(gpus != c->gpus_told ? c->config.gpus : NULL, archives != c->archives_told ? pod_archives : NULL,
                      &w);
    c->gpus_told = gpus;
    c->archives_told = archives;
    loop_timer_arm(c->heartbeat_timer, c->heartbeat_ms);
    send_or_drop(c, RECORD_HEARTBEAT, &w);
}

void agent_connection_gpus(struct agent_connection *c)
{
    if (c->up && !c->closing)
        on_heartbeat(c);
}

// Stops while the operator has not taken what was sent. Meanwhile, lines are dropped.
static void on_output(void *ctx)
{
    struct agent_connection *c = ctx;
    struct json_writer w;
    while (c->client && ws_client_queued(c->client) < WS_LOW_MARK && listen_next(&c->listen, &w))
        send_or_drop(c, RECORD_OUTPUT, &w);
    if (c->client && ws_client_queued(c->client) >= WS_LOW_MARK)
        loop_timer_arm(c->output_timer, LISTEN_BATCH_MS);
}

static void on_open(void *ctx, const char *subprotocol)
{
    struct agent_connection *c = ctx;
    struct json_writer w;
    (void)subprotocol;
    message_hello(c->config.agent, c->config.gpus, &w);
    c->gpus_told = probe_version(c->config.gpus);
    c->archives_told = pod_archives_version(agent_pod_archives(c->config.agent));
    c->hello_sent = true;
    send_or_drop(c, RECORD_HELLO, &w);
}

static void say_goodbye(struct agent_connection *c)
{
    struct json_writer w = WRITER_INIT;
    writer_print(&w, NULL, "{'reason':%s}", "the pod ends");
    send_or_drop(c, RECORD_GOODBYE, &w);
}

static void on_welcome(struct agent_connection *c, const struct record *r)
{
    c->up = true;
    c->backoff_ms = AGENT_CONNECTION_RETRY_FIRST_MS;
    c->told = 0;
    c->asked_again = false;
    c->heartbeat_ms = message_heartbeat_ms(r->body, r->len);
    loop_timer_arm(c->heartbeat_timer, c->heartbeat_ms);
    say(c, "connected", "");
    if (c->leaving)
        say_goodbye(c);
}

static void refuse(struct agent_connection *c, enum record_type type, const struct command *command,
                   const struct err *why)
{
    struct json_writer w;
    rank_output_say(agent_output(c->config.agent), "%s refused: %s", record_type_name(type), why->msg);
    message_refused(type, command, why, &w);
    send_or_drop(c, RECORD_REFUSED, &w);
}

static void on_command(struct agent_connection *c, const struct record *r)
{
    struct command *command = NULL;
    struct err err = ERR_INIT;
    if (command_parse(r->h.type, r->body, r->len, &command, &err) == 0)
        agent_command(c->config.agent, command, &err);
    if (err.code < 0 && c->client)
        refuse(c, r->h.type, command, &err);
    command_unref(command);
}

// A pod that lacks an archive asks for a piece of it.
static void on_archive(struct agent_connection *c, const struct record *r)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct archive_piece p;
    _cleanup_(buf_done) struct buf piece = BUF_INIT(ARCHIVE_PIECE_MAX),
                                   body = BUF_INIT(ARCHIVE_PIECE_MAX + 2 * ARCHIVE_HEAD_MAX);
    if (archive_piece_read(r->body, r->len, &a, &p, &err) == 0) {
        p.missing = pod_archives_read(agent_pod_archives(c->config.agent), p.sha256, p.offset, &piece, &err) < 0;
        p.data = piece.data;
        p.len = piece.len;
        archive_piece_write(&p, &body);
        const struct record_header h = {.type = RECORD_ARCHIVE, .rank = RECORD_GROUP};
        // If too much waits to be sent, this answer is dropped, and the worker asks again.
        if (ws_client_queued(c->client) < WS_LOW_MARK)
            (void)ws_client_record_copy(c->client, &h, body.data, body.len, &err);
    }
}

// The operator closes the connection after this.
static void on_refused(struct agent_connection *c, const struct record *r)
{
    struct err why;
    error_body_read(r->body, r->len, &why);
    bool again = why.code == ERR_UNAVAILABLE || why.code == ERR_THROTTLED;
    if (again && !c->asked_again)
        c->backoff_ms = AGENT_CONNECTION_AGAIN_MS;
    if (!again || !c->asked_again)
        say(c, "refused", why.msg);
    c->asked_again = again;
    c->told = why.code ? why.code : ERR_GONE;
}

static void on_record(struct agent_connection *c, const struct record *r)
{
    if (!c->up && r->h.type == RECORD_WELCOME)
        on_welcome(c, r);
    else if (c->up && command_is(r->h.type))
        on_command(c, r);
    else if (c->up && r->h.type == RECORD_OUTPUT)
        listen_command(&c->listen, r->body, r->len);
    else if (c->up && r->h.type == RECORD_ARCHIVE)
        on_archive(c, r);
    else if (r->h.type == RECORD_ERROR)
        on_refused(c, r);
    // Ignores all other records: they are for newer agents.
}

static void on_data(void *ctx, const char *data, size_t len, bool end)
{
    struct agent_connection *c = ctx;
    struct err err = ERR_INIT;
    struct record record;
    int r = 0;
    while (c->client && (r = record_reader_next(&c->reader, &data, &len, &record, &err)) > 0)
        on_record(c, &record);
    if (!c->client)
        return;
    if (r == 0 && end)
        r = record_reader_end(&c->reader, &err);
    if (r < 0)
        drop(c, &err);
}

static void on_close(void *ctx, unsigned code, const char *reason, const struct err *err)
{
    struct agent_connection *c = ctx;
    struct err why = *err;
    if (!why.code && reason[0])
        err_set(&why, ERR_GONE, "%s (%u)", reason, code);
    drop(c, &why);
}

// Returns "Bearer TOKEN". Returns NULL with an error if the token cannot be read.
static char *read_token(const struct agent_connection *c, struct err *err)
{
    _cleanup_(buf_done) struct buf token = BUF_INIT(TOKEN_MAX);
    char *header = NULL;
    if (file_read(c->config.token_file, &token, err) == 0)
        header = xasprintf("Bearer %.*s", (int)strcspn(buf_str(&token), " \t\r\n"), buf_str(&token));
    else
        err_set(err, ERR_UNAUTHORIZED, "the pod's token: %.500s", err->msg);
    return header;
}

static int open_client(struct agent_connection *c, struct err *err)
{
    _cleanup_(free_p) char *token = c->config.token_file ? read_token(c, err) : NULL;
    if (err->code < 0)
        return err->code;
    const struct handshake_header authorization = {"Authorization", token};
    const struct ws_client_config config = {.address = c->address,
                                            .path = WS_REPLICAS_PATH,
                                            .subprotocols = RECORD_SUBPROTOCOL,
                                            .headers = &authorization,
                                            .n_headers = token ? 1 : 0,
                                            .tls = c->config.tls,
                                            .server_name = c->config.server_name,
                                            .ping_ms = PING_MS,
                                            .max_message = BODY_MAX,
                                            .max_queue = QUEUE_MAX,
                                            .on_open = on_open,
                                            .on_data = on_data,
                                            .on_close = on_close,
                                            .ctx = c};
    c->client = ws_client_new(c->config.loop, &config, err);
    return err->code;
}

static void try(void *ctx)
{
    struct agent_connection *c = ctx;
    const struct record_reader_config config = {.whole = true, .max_body = BODY_MAX, .max_open = 8};
    struct err err = ERR_INIT;
    if (open_client(c, &err) < 0)
        retry_later(c, &err);
    else
        record_reader_init(&c->reader, &config);
}

struct agent_connection *agent_connection_new(const struct agent_connection_config *config, const char *address)
{
    struct agent_connection *c = xcalloc(1, sizeof *c);
    c->config = *config;
    c->address = xstrdup(address);
    c->backoff_ms = AGENT_CONNECTION_RETRY_FIRST_MS;
    c->retry_timer = loop_timer_new(config->loop, try, c);
    c->heartbeat_timer = loop_timer_new(config->loop, on_heartbeat, c);
    c->output_timer = loop_timer_new(config->loop, on_output, c);
    listen_init(&c->listen);
    loop_timer_arm(c->retry_timer, 0);
    return c;
}

void agent_connection_goodbye(struct agent_connection *c)
{
    if (c->up && !c->leaving)
        say_goodbye(c);
    c->leaving = true;
}

void agent_connection_close(struct agent_connection *c)
{
    c->closing = true;
    loop_timer_disarm(c->retry_timer);
    loop_timer_disarm(c->heartbeat_timer);
    agent_connection_goodbye(c);
    if (c->client)
        ws_client_close(c->client, FRAME_CLOSE_GOING_AWAY, "the pod ends");
}

bool agent_connection_open(const struct agent_connection *c)
{
    return c->client != NULL;
}

void agent_connection_free(struct agent_connection *c)
{
    if (!c)
        return;
    if (c->client)
        record_reader_done(&c->reader);
    ws_client_free(c->client);
    loop_timer_free(c->retry_timer);
    loop_timer_free(c->heartbeat_timer);
    loop_timer_free(c->output_timer);
    listen_done(&c->listen);
    free(c->address);
    free(c);
}

bool agent_connection_up(const struct agent_connection *c)
{
    return c->up;
}

void agent_connection_printed(struct agent_connection *c, const char *group, int rank, const char *text, size_t len)
{
    if (c->up && listen_line(&c->listen, group, rank, text, len) && !loop_timer_armed(c->output_timer))
        loop_timer_arm(c->output_timer, LISTEN_BATCH_MS);
}

void agent_connection_report(struct agent_connection *c, const struct agent_report *r)
{
    struct json_writer w;
    if (!c->hello_sent)
        return;
    enum record_type type = message_report(r, &w);
    c->gpus_told = 0; // another rank may have them now
    send_or_drop(c, type, &w);
}
