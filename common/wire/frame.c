// SPDX-License-Identifier: Apache-2.0
#include "common/wire/frame.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool frame_close_code_valid(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

size_t frame_header_size(uint64_t len, bool masked)
{
    return 2 + (len < 126 ? 0u : len < 65536 ? 2u : 8u) + (masked ? 4u : 0u);
}

size_t frame_header_encode(char *out, bool fin, enum frame_opcode opcode, uint64_t len, const uint8_t *mask_key)
{
    size_t n = 2;
    out[0] = (char)((fin ? 0x80 : 0) | opcode);
    out[1] = (char)((mask_key ? 0x80 : 0) | (len < 126 ? (int)len : len < 65536 ? 126 : 127));
    if (len >= 65536) {
        uint64_t v = htobe64(len);
        memcpy(out + 2, &v, 8);
        n = 10;
    } else if (len >= 126) {
        uint16_t v = htobe16((uint16_t)len);
        memcpy(out + 2, &v, 2);
        n = 4;
    }
    if (mask_key) {
        memcpy(out + n, mask_key, 4);
        n += 4;
    }
    return n;
}

void frame_mask(char *data, size_t len, const uint8_t key[4], size_t phase)
{
    uint8_t turned[8];
    uint64_t wide, word;
    for (size_t i = 0; i < sizeof turned; i++)
        turned[i] = key[(phase + i) & 3];
    memcpy(&wide, turned, sizeof wide);
    if (wide == 0)
        return;
    for (; len >= sizeof word; data += sizeof word, len -= sizeof word) { // memcpy: data may lie anywhere
        memcpy(&word, data, sizeof word);
        word ^= wide;
        memcpy(data, &word, sizeof word);
    }
    for (size_t i = 0; i < len; i++)
        data[i] = (char)(data[i] ^ turned[i]);
}

size_t frame_close_encode(char *out, unsigned code, const char *reason)
{
    uint16_t v = htobe16((uint16_t)code);
    size_t len = reason ? strlen(reason) : 0, used = 0;
    memcpy(out, &v, 2);
    for (size_t n; used < len && (n = str_utf8_len(reason + used, len - used)) > 0 && used + n <= FRAME_REASON_MAX;)
        used += n;
    if (used)
        memcpy(out + 2, reason, used);
    return 2 + used;
}

void frame_reader_init(struct frame_reader *r, bool server, uint64_t max_message)
{
    *r = (struct frame_reader){.server = server, .max_message = max_message};
}

__attribute__((format(printf, 4, 5))) static int fail(struct frame_reader *r, unsigned close_code, struct err *err,
                                                      const char *fmt, ...)
{
    char what[160];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    r->close_code = close_code;
    r->failed = err_set(err, close_code == FRAME_CLOSE_TOO_BIG ? ERR_LIMIT : ERR_PROTO, "%s", what);
    return r->failed;
}

static bool is_control(unsigned opcode)
{
    return opcode & 8;
}

static int check_control(struct frame_reader *r, struct err *err)
{
    if (r->opcode > FRAME_PONG)
        return fail(r, FRAME_CLOSE_PROTOCOL, err, "a frame of unknown opcode %u", r->opcode);
    if (!r->fin || r->frame_len > FRAME_CONTROL_MAX)
        return fail(r, FRAME_CLOSE_PROTOCOL, err, "a control frame that is fragmented or over %d bytes",
                    FRAME_CONTROL_MAX);
    return 0;
}

static int check_data(struct frame_reader *r, struct err *err)
{
    if (r->opcode > FRAME_BINARY)
        return fail(r, FRAME_CLOSE_PROTOCOL, err, "a frame of unknown opcode %u", r->opcode);
    if ((r->opcode == FRAME_CONTINUATION) != r->in_message)
        return fail(r, FRAME_CLOSE_PROTOCOL, err, "%s",
                    r->in_message ? "a new message inside a fragmented one" : "a continuation of nothing");
    if (r->opcode != FRAME_CONTINUATION) {
        r->in_message = true;
        r->started = false;
        r->text = r->opcode == FRAME_TEXT;
        r->message_len = 0;
        r->utf8 = (struct utf8){0};
    }
    if (r->frame_len > r->max_message - r->message_len)
        return fail(r, FRAME_CLOSE_TOO_BIG, err, "a message over %llu bytes", (unsigned long long)r->max_message);
    r->message_len += r->frame_len;
    return 0;
}

static int check_head(struct frame_reader *r, struct err *err)
{
    const uint8_t *h = r->head;
    unsigned len = h[1] & 0x7f;
    r->fin = h[0] & 0x80;
    r->opcode = h[0] & 0x0f;
    r->masked = h[1] & 0x80;
    r->frame_len = len;
    if (len == 126) {
        r->frame_len = (uint64_t)h[2] << 8 | h[3];
    } else if (len == 127) {
        memcpy(&r->frame_len, h + 2, 8);
        r->frame_len = be64toh(r->frame_len);
    }
    if (h[0] & 0x70)
        return fail(r, FRAME_CLOSE_PROTOCOL, err, "a frame of an extension that was not agreed on");
    if (r->masked != r->server)
        return fail(r, FRAME_CLOSE_PROTOCOL, err, "%s", r->server ? "a frame without mask" : "a masked frame");
    if ((len == 126 && r->frame_len < 126) || (len == 127 && r->frame_len < 65536))
        return fail(r, FRAME_CLOSE_PROTOCOL, err, "a length that is not in its shortest form");
    if (r->frame_len >> 63)
        return fail(r, FRAME_CLOSE_PROTOCOL, err, "a length over 63 bits");
    if (r->masked)
        memcpy(r->key, h + frame_header_size(r->frame_len, false), 4);
    return is_control(r->opcode) ? check_control(r, err) : check_data(r, err);
}

static size_t head_size(const struct frame_reader *r)
{
    if (r->head_len < 2)
        return 2;
    unsigned len = r->head[1] & 0x7f;
    return 2u + (len == 126 ? 2u : len == 127 ? 8u : 0u) + ((r->head[1] & 0x80) ? 4u : 0u);
}

// 1 = a payload begins
static int head_next(struct frame_reader *r, char **data, size_t *len, struct err *err)
{
    for (size_t need; r->head_len < (need = head_size(r));) {
        size_t take = MIN(*len, need - r->head_len);
        if (!take)
            return 0;
        memcpy(r->head + r->head_len, *data, take);
        r->head_len += take;
        *data += take;
        *len -= take;
    }
    int code = check_head(r, err);
    if (code < 0)
        return code;
    r->head_len = 0;
    r->frame_got = 0;
    r->in_payload = true;
    return 1;
}

static int close_event(struct frame_reader *r, struct frame_event *ret, struct err *err)
{
    size_t len = (size_t)r->frame_len;
    unsigned code = FRAME_CLOSE_NO_CODE;
    if (len == 1)
        return fail(r, FRAME_CLOSE_PROTOCOL, err, "a close frame of one byte");
    if (len >= 2) {
        code = (unsigned)(uint8_t)r->control[0] << 8 | (uint8_t)r->control[1];
        if (!frame_close_code_valid(code))
            return fail(r, FRAME_CLOSE_PROTOCOL, err, "a close frame with code %u", code);
        if (!str_utf8_valid(r->control + 2, len - 2))
            return fail(r, FRAME_CLOSE_BAD_TEXT, err, "a close frame whose reason is not UTF-8");
    }
    r->closed = true;
    *ret = (struct frame_event){
        .type = FRAME_EVENT_CLOSE, .code = code, .data = r->control + MIN(len, 2), .len = len - MIN(len, 2)};
    return 1;
}

static int control_next(struct frame_reader *r, char **data, size_t *len, struct frame_event *ret, struct err *err)
{
    size_t take = MIN(*len, (size_t)(r->frame_len - r->frame_got));
    if (take)
        memcpy(r->control + r->frame_got, *data, take);
    r->frame_got += take;
    *data += take;
    *len -= take;
    if (r->frame_got < r->frame_len)
        return 0;
    r->in_payload = false;
    if (r->masked)
        frame_mask(r->control, (size_t)r->frame_len, r->key, 0);
    if (r->opcode == FRAME_CLOSE)
        return close_event(r, ret, err);
    *ret = (struct frame_event){.type = r->opcode == FRAME_PING ? FRAME_EVENT_PING : FRAME_EVENT_PONG,
                                .data = r->control,
                                .len = (size_t)r->frame_len};
    return 1;
}

// 0 also for a frame that is complete and has nothing to hand out
static int data_next(struct frame_reader *r, char **data, size_t *len, struct frame_event *ret, struct err *err)
{
    char *piece = *data;
    size_t take = (size_t)MIN((uint64_t)*len, r->frame_len - r->frame_got);
    if (r->masked && take)
        frame_mask(piece, take, r->key, (size_t)(r->frame_got & 3));
    r->frame_got += take;
    *data += take;
    *len -= take;
    bool done = r->frame_got == r->frame_len, last = done && r->fin;
    r->in_payload = !done;
    if (r->text && (!utf8_feed(&r->utf8, piece, take) || (last && !utf8_complete(&r->utf8))))
        return fail(r, FRAME_CLOSE_BAD_TEXT, err, "a text message that is not UTF-8");
    if (last)
        r->in_message = false;
    if (!take && !last)
        return 0;
    *ret = (struct frame_event){
        .type = FRAME_EVENT_DATA, .text = r->text, .first = !r->started, .last = last, .data = piece, .len = take};
    r->started = true;
    return 1;
}

int frame_reader_next(struct frame_reader *r, char **data, size_t *len, struct frame_event *ret, struct err *err)
{
    if (r->failed)
        return err_set(err, r->failed, "an earlier frame was refused");
    if (r->closed) { // 5.5.1: nothing after a close frame counts
        *data += *len;
        *len = 0;
        return 0;
    }
    for (;;) {
        int got = 1;
        if (!r->in_payload)
            got = head_next(r, data, len, err);
        if (got <= 0)
            return got;
        got = is_control(r->opcode) ? control_next(r, data, len, ret, err) : data_next(r, data, len, ret, err);
        if (got != 0 || r->in_payload)
            return got;
    }
}

uint64_t frame_reader_data_left(const struct frame_reader *r)
{
    bool data = r->in_payload && !is_control(r->opcode) && !r->text && !r->failed && !r->closed;
    return data ? r->frame_len - r->frame_got : 0;
}
