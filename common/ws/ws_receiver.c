// SPDX-License-Identifier: Apache-2.0
// Reads the data of open sessions with the client's codec, and not with libwebsockets. So one reader keeps the rules of
// RFC 6455, with TLS and without. A long body goes from the socket, or from OpenSSL, straight to its buffer, and not
// through a buffer of libwebsockets. libwebsockets keeps the socket and its TLS, writes to it and watches whether it is
// alive. It only never reads again (docs/adr/0008-reading-past-libwebsockets.md).
#include "common/ws/ws_receiver.h"

#include "common/base/mem.h"
#include "common/ws/ws_reader.h"

#include <stdlib.h>

#define READS_A_TURN 4 // into buffers, then others read
#define BUFFER_MIN ((size_t)16 << 10)
#define FRAME_BYTES ((size_t)256) // a frame counts as at least this many bytes

enum {
    TLS_READS_A_TURN = 32,    // of a TLS record each, 16 KiB ...
    TLS_READS_AMONG_MANY = 4, // ... while other sessions have data, too
};

struct ws_receiver {
    struct ws_reader reader;
    struct ws_session *session;
    const struct ws_receiver_events *on;
    struct frame_reader frames;
    bool ended; // there is nothing to read any more
};

void ws_receiver_watch(struct ws_session *s)
{
    ws_reader_want(&s->receiver->reader, !s->paused && !s->receiver->ended);
}

static void take_event(struct ws_session *s, const struct frame_event *e)
{
    switch (e->type) {
    case FRAME_EVENT_DATA:
        s->receiver->on->data(s, e->text, e->data, e->len, e->last);
        break;
    case FRAME_EVENT_PING:
        s->receiver->on->ping(s, e->data, e->len);
        break;
    case FRAME_EVENT_PONG: // it only shows that the peer is alive
        break;
    case FRAME_EVENT_CLOSE:
        s->receiver->on->closed(s, e->code, e->data, e->len);
        break;
    }
}

static void take(struct ws_session *s, char *data, size_t len)
{
    struct frame_event e;
    struct err err = ERR_INIT;
    struct frame_reader *frames = &s->receiver->frames;
    while (!frames->failed && len) {
        int got = frame_reader_next(frames, &data, &len, &e, &err);
        if (got < 0)
            s->receiver->on->refused(s, frames->close_code, err.msg);
        if (got <= 0)
            return;
        s->work += FRAME_BYTES - MIN(e.len, FRAME_BYTES);
        take_event(s, &e);
    }
}

// Returns the buffer for the next payload. It is empty if there is little of it, or if something else may come.
static struct iovec find_buffer(struct ws_session *s)
{
    const struct ws_server_config *config = &s->connection->server->config;
    size_t left = config->on_buffer && !s->closing ? frame_reader_data_left(&s->receiver->frames) : 0, room = 0;
    char *buffer = left >= BUFFER_MIN ? config->on_buffer(config->ctx, s, &room) : NULL;
    room = buffer ? MIN(room, left) : 0;
    return room >= BUFFER_MIN ? (struct iovec){buffer, room} : (struct iovec){NULL, 0};
}

static void end(struct ws_session *s)
{
    s->receiver->ended = true;
    ws_receiver_watch(s);
    s->receiver->on->ended(s);
}

// False: nothing more is there now, or others read first. *wave: bytes without a buffer of their own.
static bool read_once(struct ws_session *s, size_t *wave, size_t *bytes)
{
    struct ws_server *server = s->connection->server;
    struct iovec into[2] = {find_buffer(s), {server->read_buf, server->config.read_size}};
    bool direct = into[0].iov_len > 0;
    ssize_t n = ws_reader_read(&s->receiver->reader, into);
    if (n < 0)
        end(s);
    if (n <= 0)
        return false;
    s->heard = true;
    *bytes += (size_t)n;
    size_t first = MIN((size_t)n, into[0].iov_len);
    take(s, into[0].iov_base, first);
    take(s, server->read_buf, (size_t)n - first);
    *wave += direct ? 0 : (size_t)n;
    if (s->paused || s->cut)
        return false;
    return s->receiver->reader.ssl || (direct && (size_t)n == into[0].iov_len + into[1].iov_len);
}

// The results of a wave of short messages go out before the next wave is read.
static size_t read_turn(struct ws_reader *r, bool alone)
{
    struct ws_session *s = CONTAINER_OF(r, struct ws_receiver, reader)->session;
    int reads = !r->ssl ? READS_A_TURN : alone ? TLS_READS_A_TURN : TLS_READS_AMONG_MANY;
    size_t wave = 0, bytes = 0;
    s->work = 0;
    for (int i = 0; i < reads && !s->paused && wave < WS_WAVE; i++)
        if (!read_once(s, &wave, &bytes))
            break;
    return bytes + s->work;
}

static void unwatched(struct ws_reader *r)
{
    struct ws_session *s = CONTAINER_OF(r, struct ws_receiver, reader)->session;
    s->receiver->on->ended(s);
}

void ws_receiver_new(struct ws_session *s, const struct ws_receiver_events *on)
{
    s->receiver = xcalloc(1, sizeof *s->receiver);
    s->receiver->session = s;
    s->receiver->on = on;
    frame_reader_init(&s->receiver->frames, true, s->connection->server->config.max_message);
    ws_reader_init(&s->receiver->reader, s->connection, read_turn, unwatched);
    ws_receiver_watch(s);
}

void ws_receiver_owner(struct ws_session *s, const char *name, unsigned weight)
{
    ws_reader_owner(&s->receiver->reader, name, weight);
}

bool ws_receiver_failed(const struct ws_session *s)
{
    return s->receiver && s->receiver->frames.failed;
}

void ws_receiver_stop(struct ws_session *s)
{
    s->receiver->ended = true;
    ws_reader_leave(&s->receiver->reader);
}

void ws_receiver_free(struct ws_session *s)
{
    if (!s->receiver)
        return;
    ws_reader_done(&s->receiver->reader);
    free(TAKE_PTR(s->receiver));
}
