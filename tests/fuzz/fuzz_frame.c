// SPDX-License-Identifier: Apache-2.0
// Frames and answers to a handshake from a peer. The first byte: bit 0 the role, bit 1 an answer instead of frames, the
// others how the rest is cut. However frames are cut, the same comes out of them.
#include "common/base/mem.h"
#include "common/wire/frame.h"
#include "common/wire/handshake.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

// The content of the frames, without how it was cut.
static void read_frames(const uint8_t *data, size_t size, bool server, size_t step, struct buf *out)
{
    struct frame_reader r;
    struct frame_event e;
    struct err err = ERR_INIT;
    int got = 0;
    frame_reader_init(&r, server, 4096);
    for (size_t at = 0; at < size && got >= 0;) {
        size_t len = MIN(step, size - at);
        char *piece = xmalloc(len), *p = piece;
        memcpy(piece, data + at, len);
        at += len;
        while ((got = frame_reader_next(&r, &p, &len, &e, &err)) == 1) {
            must(e.type == FRAME_EVENT_DATA || e.len <= FRAME_CONTROL_MAX);
            if (e.type != FRAME_EVENT_DATA)
                buf_printf(out, "<%d %u>", (int)e.type, e.code);
            if (e.first)
                buf_puts(out, e.text ? "<text>" : "<binary>");
            buf_append(out, e.data, e.len);
            if (e.last)
                buf_puts(out, "<end>");
        }
        must(got == 0 ? len == 0 : got == err.code && err.msg[0] && frame_close_code_valid(r.close_code));
        free(piece);
    }
    // Where a text breaks in the middle of a piece, more of it has come out of smaller pieces.
    if (got < 0) {
        buf_reset(out);
        buf_printf(out, "<refused %u>", r.close_code);
    }
}

static void read_answer(const uint8_t *data, size_t size)
{
    static const char key[] = "dGhlIHNhbXBsZSBub25jZQ==";
    _cleanup_(free_p) char *head = xmalloc(size + 1);
    memcpy(head, data, size);
    head[size] = '\0';
    size_t len = handshake_head_len(head, size);
    struct err err = ERR_INIT;
    if (!len)
        return;
    char protocol[HANDSHAKE_PROTOCOL_SIZE];
    int r = handshake_answer_check(head, len, head + len, size - len, key, "cadre.v1, cadre.v1.json", protocol, &err);
    must(r == err.code && (r < 0 || !protocol[0] || handshake_offers("cadre.v1, cadre.v1.json", protocol)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (data[0] & 2) {
        read_answer(data + 1, size - 1);
        return 0;
    }
    struct buf whole = BUF_INIT(1 << 24), cut = BUF_INIT(1 << 24);
    read_frames(data + 1, size - 1, data[0] & 1, size, &whole);
    read_frames(data + 1, size - 1, data[0] & 1, (data[0] >> 2) + 1u, &cut);
    must(whole.len == cut.len && memcmp(buf_str(&whole), buf_str(&cut), whole.len) == 0);
    buf_done(&whole);
    buf_done(&cut);
    return 0;
}
