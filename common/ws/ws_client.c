// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_client.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/wire/frame.h"
#include "common/ws/ws_client_config.h"
#include "common/ws/ws_outbox.h"
#include "common/ws/ws_silence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READS_A_TURN 16 // into buffers, then others read
#define BUFFER_MIN ((size_t)16 << 10)
#define PUSH_MIN (2 * WS_WAVE) // of short records, with their cost in the queue
#define BUFFER_TAIL ((size_t)4 << 10)
#define CLOSE_MS 5000  // for the peer's close frame
#define LINGER_MS 1000 // for a peer that is refused: it may still be sending for this long

enum state {
    STATE_CONNECT,
    STATE_HANDSHAKE,
    STATE_OPEN,
    STATE_CLOSING,   // our close frame is queued or out, and the peer's has not come
    STATE_REFUSING,  // the peer broke a rule: it gets a close frame, and what it sends is dropped
    STATE_ANSWERING, // the peer's close frame came, ours goes out
    STATE_CLOSED,
};

struct ws_client {
    struct loop *loop;
    struct ws_client_config config; // its strings are owned
    enum state state;
    struct ws_link *link;
    struct loop_timer *deadline; // of opening, of closing
    struct loop_timer *alive;
    struct loop_timer *work; // work that a call of the API left for the next turn
    char key[HANDSHAKE_KEY_SIZE];
    char protocol[HANDSHAKE_PROTOCOL_SIZE];
    struct buf text; // the answer to the handshake; then a message that comes in pieces
    struct frame_reader frames;
    struct buf waiting;    // was read, and not handed out because of a pause
    bool paused, read_due; // read_due: there may be bytes that no poll reports
    struct ws_silence silence;
    char at[WS_LINK_AT_SIZE];
    struct ws_outbox out;
    struct err failed; // a write outside of a turn failed: the next turn reports it
    unsigned close_code;
    char close_reason[FRAME_REASON_MAX + 1];
    struct err close_err;
    unsigned busy; // callbacks on the stack: the memory is freed after them
    bool freed;
};

static bool read_some(struct ws_client *c);

static void destroy(struct ws_client *c)
{
    ws_outbox_done(&c->out);
    buf_done(&c->text);
    buf_done(&c->waiting);
    ws_client_config_done(&c->config);
    free(c);
}

static void leave(struct ws_client *c)
{
    if (--c->busy == 0 && c->freed)
        destroy(c);
}

static void hang_up(struct ws_client *c)
{
    ws_link_free(TAKE_PTR(c->link));
    loop_timer_free(TAKE_PTR(c->deadline));
    loop_timer_free(TAKE_PTR(c->alive));
    loop_timer_free(TAKE_PTR(c->work));
}

void ws_client_free(struct ws_client *c)
{
    if (!c || c->freed)
        return;
    c->freed = true;
    c->state = STATE_CLOSED;
    c->busy++;
    hang_up(c);
    leave(c);
}

static void set_close(struct ws_client *c, unsigned code, const char *reason, size_t len)
{
    c->close_code = code;
    snprintf(c->close_reason, sizeof c->close_reason, "%.*s", (int)MIN(len, sizeof c->close_reason - 1), reason);
}

// The end: the last callback.
static void finish(struct ws_client *c, const struct err *err)
{
    if (c->state == STATE_CLOSED)
        return;
    c->state = STATE_CLOSED;
    c->close_err = *err;
    hang_up(c);
    c->config.on_close(c->config.ctx, c->close_code, c->close_reason, &c->close_err);
    ws_outbox_done(&c->out);
}

// The connection ended without a close frame.
static void lost(struct ws_client *c, struct err *err)
{
    if (c->state > STATE_OPEN) { // nothing more to say, or nearly
        finish(c, &c->close_err);
        return;
    }
    set_close(c, FRAME_CLOSE_ABNORMAL, "", 0);
    err_wrap(err, "connection to %s%s%s", c->config.address, c->config.path, c->at);
    finish(c, err);
}

static void on_failed(void *ctx, const struct err *err)
{
    struct ws_client *c = ctx;
    c->busy++;
    set_close(c, FRAME_CLOSE_ABNORMAL, "", 0);
    finish(c, err);
    leave(c);
}

// Writing

static bool wants_to_read(const struct ws_client *c)
{
    return c->link && c->state > STATE_CONNECT && c->state < STATE_ANSWERING && !(c->paused && c->state == STATE_OPEN);
}

static void update_wanted(struct ws_client *c)
{
    if (c->link && c->state != STATE_CONNECT)
        ws_link_want(c->link, (wants_to_read(c) ? LOOP_READ : 0) | (ws_outbox_pending(&c->out) ? LOOP_WRITE : 0));
}

static void arm_work(struct ws_client *c)
{
    if (c->work && c->state > STATE_CONNECT && !loop_timer_armed(c->work))
        loop_timer_arm(c->work, 0);
}

static void flush(struct ws_client *c)
{
    struct err err = c->failed;
    if (!c->link || c->state == STATE_CONNECT)
        return;
    int more = err.code ? err.code : ws_outbox_flush(&c->out, c->link, &err);
    if (more < 0) { // the peer may have said why
        while (c->state < STATE_ANSWERING && read_some(c))
            ;
        lost(c, &err);
        return;
    }
    if (more)
        arm_work(c);
    if (c->state == STATE_ANSWERING && c->out.close == OUTBOX_CLOSED && !ws_outbox_pending(&c->out)) {
        finish(c, &c->close_err);
        return;
    }
    update_wanted(c);
    if (c->state == STATE_OPEN && ws_queue_drained(&c->out.queue) && c->config.on_drained)
        c->config.on_drained(c->config.ctx);
}

// Closing

static void begin_close(struct ws_client *c, enum state state, int64_t ms, const struct err *err)
{
    c->state = state;
    c->close_err = *err;
    ws_outbox_close(&c->out, c->close_code, c->close_reason, state == STATE_CLOSING);
    loop_timer_arm(c->deadline, ms);
    c->read_due = true; // a pause has ended
    arm_work(c);
}

static void refuse(struct ws_client *c, unsigned code, struct err *err)
{
    set_close(c, code, err->msg, strlen(err->msg));
    err_wrap(err, "connection to %s%s%s", c->config.address, c->config.path, c->at);
    begin_close(c, STATE_REFUSING, LINGER_MS, err);
}

static void peer_closes(struct ws_client *c, const struct frame_event *e)
{
    if (c->state == STATE_CLOSING && c->out.close == OUTBOX_CLOSED && !ws_outbox_pending(&c->out)) {
        finish(c, &c->close_err); // the answer to ours
        return;
    }
    set_close(c, e->code, e->data, e->len);
    begin_close(c, STATE_ANSWERING, CLOSE_MS, &(struct err){0});
}

void ws_client_close(struct ws_client *c, unsigned code, const char *reason)
{
    if (c->state > STATE_OPEN)
        return;
    set_close(c, code, reason ? reason : "", reason ? strlen(reason) : 0);
    bool open = c->state == STATE_OPEN;
    begin_close(c, STATE_CLOSING, open ? CLOSE_MS : 0, &(struct err){0});
    if (!open) // nobody to tell yet
        ws_link_free(TAKE_PTR(c->link));
}

static void on_deadline(void *ctx)
{
    struct ws_client *c = ctx;
    struct err err = ERR_INIT;
    c->busy++;
    if (c->state <= STATE_HANDSHAKE) {
        err_set(&err, ERR_TIMEOUT, "not open after %lld ms (%s)", (long long)c->config.open_ms,
                c->state == STATE_CONNECT ? ws_link_phase(c->link) : "waiting for the answer to the handshake");
        lost(c, &err);
    } else {
        finish(c, &c->close_err);
    }
    leave(c);
}

// Reading

static void deliver_whole(struct ws_client *c, const struct frame_event *e)
{
    if (e->first && e->last) {
        c->config.on_message(c->config.ctx, e->text, e->data, e->len);
        return;
    }
    if (e->first)
        buf_reset(&c->text);
    if (buf_append(&c->text, e->data, e->len) < 0 || !e->last)
        return;                                       // the frame reader has the same cap
    _cleanup_(buf_done) struct buf message = c->text; // the callback may pause, and nothing else may touch it
    c->text = BUF_INIT(message.cap);
    c->config.on_message(c->config.ctx, e->text, buf_str(&message), message.len);
}

static void take_data(struct ws_client *c, const struct frame_event *e)
{
    struct err err = ERR_INIT;
    if (!e->text && c->config.on_data) {
        c->config.on_data(c->config.ctx, e->data, e->len, e->last);
    } else if (c->config.on_message) {
        deliver_whole(c, e);
    } else {
        err_set(&err, ERR_PROTO, "a %s message, which is not spoken here", e->text ? "text" : "binary");
        refuse(c, FRAME_CLOSE_UNSUPPORTED, &err);
    }
}

static void take_event(struct ws_client *c, const struct frame_event *e)
{
    if (e->type == FRAME_EVENT_CLOSE) {
        peer_closes(c, e);
    } else if (e->type == FRAME_EVENT_PING) {
        ws_outbox_pong(&c->out, e->data, e->len);
        arm_work(c);
    } else if (e->type == FRAME_EVENT_DATA && c->state == STATE_OPEN) {
        take_data(c, e);
    }
}

static void take_frames(struct ws_client *c, char *data, size_t len)
{
    struct frame_event e;
    struct err err = ERR_INIT;
    while (c->state == STATE_OPEN || c->state == STATE_CLOSING) {
        if (c->paused && c->state == STATE_OPEN) {
            buf_append(&c->waiting, data, len);
            return;
        }
        int got = frame_reader_next(&c->frames, &data, &len, &e, &err);
        if (got < 0)
            refuse(c, c->frames.close_code, &err);
        if (got <= 0)
            return;
        take_event(c, &e);
    }
}

static void opened(struct ws_client *c)
{
    c->state = STATE_OPEN;
    c->out.waits = false;
    c->out.zero_mask = !c->config.mask_always && ws_link_trusted(c->link);
    c->out.gathers = c->out.zero_mask && ws_link_plain(c->link);
    loop_timer_disarm(c->deadline);
    loop_timer_arm(c->alive, 0);
    arm_work(c);
    if (c->config.on_open)
        c->config.on_open(c->config.ctx, c->protocol);
}

// Returns how many bytes belong to the answer.
static size_t take_answer(struct ws_client *c, const char *data, size_t len)
{
    struct err err = ERR_INIT;
    size_t had = c->text.len;
    if (buf_append(&c->text, data, MIN(len, c->text.cap - had)) < 0)
        return len;
    bool complete = handshake_answer_complete(c->text.data, c->text.len);
    size_t head = handshake_head_len(c->text.data, c->text.len);
    if (!complete && c->text.len < c->text.cap)
        return len;
    if (!head)
        err_set(&err, ERR_LIMIT, "the answer to the handshake is over %zu bytes", c->text.cap);
    else
        handshake_answer_check(c->text.data, head, c->text.data + head, c->text.len - head, c->key,
                               c->config.subprotocols, c->protocol, &err);
    if (err.code) {
        lost(c, &err);
        return len;
    }
    buf_done(&c->text);
    c->text.cap = c->config.max_message;
    opened(c);
    return head - had;
}

static void take(struct ws_client *c, char *data, size_t len)
{
    if (c->state == STATE_HANDSHAKE) {
        size_t used = take_answer(c, data, len);
        data += used;
        len -= used;
    }
    if (len)
        take_frames(c, data, len);
}

static void take_waiting(struct ws_client *c)
{
    _cleanup_(buf_done) struct buf waiting = c->waiting;
    c->waiting = BUF_INIT(waiting.cap);
    take(c, waiting.data, waiting.len);
}

// Returns the buffer for the next payload. It is empty if there is little of it, or if something else may come.
static struct iovec find_buffer(struct ws_client *c)
{
    size_t left = c->state == STATE_OPEN && c->config.on_buffer ? frame_reader_data_left(&c->frames) : 0, room = 0;
    char *buffer = left >= BUFFER_MIN ? c->config.on_buffer(c->config.ctx, &room) : NULL;
    room = buffer ? MIN(room, left) : 0;
    return room >= BUFFER_MIN ? (struct iovec){buffer, room} : (struct iovec){NULL, 0};
}

// False: nothing came, or all of it was read, or the connection is lost.
static bool read_once(struct ws_client *c, bool *ret_direct, struct err *err)
{
    char data[WS_WAVE];
    struct iovec into[2] = {find_buffer(c), {data, 0}};
    bool direct = *ret_direct = into[0].iov_len > 0;
    into[1].iov_len = direct ? BUFFER_TAIL : WS_WAVE; // a frame head or two; all other data goes to its buffer
    size_t want = into[0].iov_len + into[1].iov_len;
    int64_t n = direct ? ws_link_read(c->link, into, 2, err) : ws_link_read(c->link, &into[1], 1, err);
    if (n < 0)
        lost(c, err);
    if (n <= 0)
        return false;
    ws_silence_heard(&c->silence, clock_mono_ms(loop_clock(c->loop)));
    size_t first = MIN((size_t)n, into[0].iov_len);
    if (first)
        take(c, into[0].iov_base, first);
    if ((size_t)n > first)
        take(c, data, (size_t)n - first);
    return (size_t)n == want || !c->link || !ws_link_drained(c->link);
}

// Reads as much as a turn may. False: nothing can be read now, or nothing is wanted.
static bool read_some(struct ws_client *c)
{
    struct err err = ERR_INIT;
    bool direct = true;
    if (c->waiting.len && wants_to_read(c))
        take_waiting(c);
    for (int i = 0; i < READS_A_TURN && direct; i++) {
        if (!wants_to_read(c) || !read_once(c, &direct, &err))
            return false;
    }
    return true;
}

static void read_turn(struct ws_client *c)
{
    c->read_due = read_some(c) && c->link && !ws_link_plain(c->link); // TLS may have more bytes, which no poll reports
    if (c->read_due)
        arm_work(c);
}

static void on_work(void *ctx)
{
    struct ws_client *c = ctx;
    c->busy++;
    flush(c);
    if (c->read_due)
        read_turn(c);
    update_wanted(c);
    leave(c);
}

static void on_ready(void *ctx, int events)
{
    struct ws_client *c = ctx;
    c->busy++;
    if (events & LOOP_READ)
        read_turn(c);
    if ((events & LOOP_WRITE) && ws_outbox_pending(&c->out))
        flush(c);
    update_wanted(c);
    leave(c);
}

static void on_alive(void *ctx)
{
    struct ws_client *c = ctx;
    struct err err = ERR_INIT;
    int64_t now = clock_mono_ms(loop_clock(c->loop)), again;
    if (c->state != STATE_OPEN)
        return;
    c->busy++;
    if (c->paused) // it does not listen, by its own choice
        ws_silence_heard(&c->silence, now);
    bool waits = c->config.waits && c->config.waits(c->config.ctx);
    enum ws_silence_verdict v = ws_silence_ask(&c->silence, now, waits, &again);
    loop_timer_arm(c->alive, again);
    if (v == WS_SILENCE_PING) {
        c->out.ping_due = true;
        arm_work(c);
    }
    // Timers run before sockets. After a long turn, bytes that prove the peer alive may still be unread.
    if (v == WS_SILENCE_DEAD)
        read_turn(c);
    if (v == WS_SILENCE_DEAD && c->state == STATE_OPEN && c->silence.pinged) {
        err_set(&err, ERR_TIMEOUT, "silent for %lld ms and no answer to a ping",
                (long long)(now - c->silence.heard_ms));
        lost(c, &err);
    }
    leave(c);
}

static void on_up(void *ctx)
{
    struct ws_client *c = ctx;
    _cleanup_(buf_done) struct buf request = BUF_INIT(HANDSHAKE_HEAD_MAX);
    struct err err = ERR_INIT;
    c->busy++;
    snprintf(c->at, sizeof c->at, "%s", ws_link_at(c->link));
    if (ws_client_config_request(&c->config, ws_link_host(c->link), c->key, &request, &err) < 0) {
        lost(c, &err);
    } else {
        c->state = STATE_HANDSHAKE;
        size_t len = request.len;
        ws_outbox_raw(&c->out, buf_take(&request), len);
        flush(c);
    }
    leave(c);
}

struct ws_client *ws_client_new(struct loop *loop, const struct ws_client_config *config, struct err *err)
{
    struct ws_client *c = xcalloc(1, sizeof *c);
    c->loop = loop;
    c->config = ws_client_config_copy(config);
    c->silence = (struct ws_silence){.ping_ms = c->config.ping_ms, .pong_ms = c->config.pong_ms};
    c->text = BUF_INIT(HANDSHAKE_HEAD_MAX);
    c->waiting = BUF_INIT(WS_WAVE);
    ws_outbox_init(&c->out, c->config.max_queue);
    c->out.waits = true; // RFC 6455, 4.1: not before the 101
    frame_reader_init(&c->frames, false, c->config.max_message);
    const struct ws_link_config link = {.address = c->config.address,
                                        .tls = config->tls,
                                        .server_name = c->config.server_name,
                                        .addresses = config->addresses,
                                        .up = on_up,
                                        .ready = on_ready,
                                        .failed = on_failed,
                                        .ctx = c};
    c->link = ws_link_new(loop, &link, err);
    if (!c->link)
        return destroy(c), NULL;
    c->deadline = loop_timer_new(loop, on_deadline, c);
    c->alive = loop_timer_new(loop, on_alive, c);
    c->work = loop_timer_new(loop, on_work, c);
    loop_timer_arm(c->deadline, c->config.open_ms);
    return c;
}

void ws_client_flush(struct ws_client *c)
{
    if (c->busy || !c->work || !loop_timer_armed(c->work))
        return;
    loop_timer_disarm(c->work);
    on_work(c);
}

static int check_open(const struct ws_client *c, struct err *err)
{
    return c->state <= STATE_OPEN ? 0 : err_set(err, ERR_GONE, "the connection is closed");
}

static int queued(struct ws_client *c, int r)
{
    if (r == 0) {
        ws_queue_drained(&c->out.queue); // notes the high mark
        if (c->config.waits && c->state == STATE_OPEN && ws_silence_sent(&c->silence))
            loop_timer_arm(c->alive, 0);
        arm_work(c);
    }
    return r;
}

int ws_client_record(struct ws_client *c, const struct record_header *h, const struct record_part *parts, size_t n,
                     struct err *err)
{
    int r = check_open(c, err);
    return r < 0 ? r : queued(c, record_writer_push(&c->out.queue.records, h, parts, n, err));
}

int ws_client_record_copy(struct ws_client *c, const struct record_header *h, const void *body, size_t len,
                          struct err *err)
{
    bool much = ws_client_queued(c) >= PUSH_MIN;
    int r = check_open(c, err);
    if (r == 0)
        r = queued(c, record_writer_copy(&c->out.queue.records, h, body, len, err));
    // The other end can work while more is queued. If the socket takes nothing now, the turn tries again.
    if (!much && ws_client_queued(c) >= PUSH_MIN && c->state == STATE_OPEN && !ws_outbox_pending(&c->out))
        (void)ws_outbox_flush(&c->out, c->link, &c->failed);
    return r;
}

int ws_client_message(struct ws_client *c, bool text, const void *data, size_t len, struct err *err)
{
    int r = check_open(c, err);
    return r < 0 ? r : queued(c, ws_queue_message(&c->out.queue, text, data, len, err));
}

void ws_client_own(struct ws_client *c, const struct blob *b)
{
    gather_own(&c->out.frame, b);
}

struct record_writer *ws_client_records(struct ws_client *c)
{
    return arm_work(c), &c->out.queue.records;
}

bool ws_client_open(const struct ws_client *c)
{
    return c->state == STATE_OPEN;
}

bool ws_client_ended(const struct ws_client *c)
{
    return c->link && ws_link_ended(c->link);
}

const char *ws_client_at(const struct ws_client *c)
{
    return c->at;
}

void ws_client_avoid(struct ws_client *c)
{
    ws_link_avoid(c->link);
}

pid_t ws_client_peer(const struct ws_client *c)
{
    return ws_link_peer(c->link);
}

size_t ws_client_queued(const struct ws_client *c)
{
    return ws_queue_bytes(&c->out.queue);
}

void ws_client_pause(struct ws_client *c)
{
    c->paused = true;
    if (c->state == STATE_OPEN)
        update_wanted(c);
}

void ws_client_resume(struct ws_client *c)
{
    if (!c->paused)
        return;
    c->paused = false;
    ws_silence_heard(&c->silence, clock_mono_ms(loop_clock(c->loop)));
    c->read_due = true;
    arm_work(c);
}
