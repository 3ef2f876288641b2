// SPDX-License-Identifier: Apache-2.0
// Frames of RFC 6455, both roles; bytes in, bytes out, no I/O. No extensions. Numbers of sections are the RFC's.
#pragma once

#include "common/base/err.h"
#include "common/base/utf8.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER_MAX 14
#define FRAME_CONTROL_MAX 125 // bytes of payload in a ping, pong or close
#define FRAME_REASON_MAX 123  // bytes of the reason in a close

enum frame_opcode {
    FRAME_CONTINUATION = 0,
    FRAME_TEXT = 1,
    FRAME_BINARY = 2,
    FRAME_CLOSE = 8,
    FRAME_PING = 9,
    FRAME_PONG = 10,
};

enum frame_close_code { // 7.4.1
    FRAME_CLOSE_NORMAL = 1000,
    FRAME_CLOSE_GOING_AWAY = 1001,
    FRAME_CLOSE_PROTOCOL = 1002,
    FRAME_CLOSE_UNSUPPORTED = 1003,
    FRAME_CLOSE_NO_CODE = 1005,  // reported, never sent: a close frame without a code
    FRAME_CLOSE_ABNORMAL = 1006, // reported, never sent: the connection ended without a close frame
    FRAME_CLOSE_BAD_TEXT = 1007,
    FRAME_CLOSE_POLICY = 1008,
    FRAME_CLOSE_TOO_BIG = 1009,
    FRAME_CLOSE_INTERNAL = 1011,
    FRAME_CLOSE_TRY_LATER = 1013,
};

bool frame_close_code_valid(unsigned code); // may be in a close frame

// Writes a header, up to FRAME_HEADER_MAX bytes, and returns its size. mask_key: NULL on a server.
size_t frame_header_encode(char *out, bool fin, enum frame_opcode opcode, uint64_t len, const uint8_t *mask_key);
// The size of that header.
size_t frame_header_size(uint64_t len, bool masked);
// Masks or unmasks in place; `phase` is how many bytes of the payload came before.
void frame_mask(char *data, size_t len, const uint8_t key[4], size_t phase);
// The payload of a close frame, up to FRAME_CONTROL_MAX bytes; the reason is cut at a character.
size_t frame_close_encode(char *out, unsigned code, const char *reason);

enum frame_event_type { FRAME_EVENT_DATA, FRAME_EVENT_PING, FRAME_EVENT_PONG, FRAME_EVENT_CLOSE };

struct frame_event {
    enum frame_event_type type;
    bool text;        // DATA: a text message, checked to be UTF-8
    bool first, last; // DATA: the piece begins, ends a message
    unsigned code;    // CLOSE: FRAME_CLOSE_NO_CODE if it had none
    const char *data; // unmasked; CLOSE: the reason. DATA lies in the input, the others until the next call
    size_t len;
};

struct frame_reader {
    bool server;          // frames must be masked (5.1); otherwise they must not be
    uint64_t max_message; // bytes over all fragments
    // state
    uint8_t head[FRAME_HEADER_MAX];
    size_t head_len;
    bool in_payload, fin, masked;
    uint8_t opcode, key[4];
    uint64_t frame_len, frame_got;
    bool in_message, text, started; // started: a piece of the message was handed out
    uint64_t message_len;
    struct utf8 utf8;
    char control[FRAME_CONTROL_MAX];
    bool closed; // after a close frame
    int failed;
    unsigned close_code; // the code for the close frame after an error
};

void frame_reader_init(struct frame_reader *r, bool server, uint64_t max_message);
// 1: *ret is set. 0: all bytes were taken. Negative: close with r->close_code. Payload is unmasked in place and handed
// out in pieces as it arrives; an empty message is one empty piece. After a close frame, nothing more is handed out.
int frame_reader_next(struct frame_reader *r, char **data, size_t *len, struct frame_event *ret, struct err *err);
// How many of the next bytes are certainly payload of the current binary message.
uint64_t frame_reader_data_left(const struct frame_reader *r);
