// SPDX-License-Identifier: Apache-2.0
// The opening handshake of RFC 6455, section 4, on the client's side, and a refusal. Text in, text out, no I/O.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HANDSHAKE_HEAD_MAX ((size_t)16 << 10) // bytes of a request's or answer's head
#define HANDSHAKE_KEY_SIZE 25                 // with NUL
#define HANDSHAKE_ACCEPT_SIZE 29              // with NUL
#define HANDSHAKE_PROTOCOL_SIZE 64            // with NUL

void handshake_key(const uint8_t nonce[16], char out[HANDSHAKE_KEY_SIZE]);
void handshake_accept(const char *key, char out[HANDSHAKE_ACCEPT_SIZE]);

// The length of the head, up to and including the first empty line; 0 = not complete yet.
size_t handshake_head_len(const char *data, size_t len);

struct handshake_header {
    const char *name, *value;
};

const struct handshake_header *handshake_headers_copy(const struct handshake_header *from, size_t n);
void handshake_headers_free(const struct handshake_header *headers, size_t n); // of a copy

// The request of a client.
struct handshake_request {
    const char *host, *path;  // as in the Host header; "/..."
    const char *subprotocols; // comma separated, in order of preference; NULL = none
    const struct handshake_header *headers;
    size_t n_headers;
};

// ERR_INVALID if a value would break the head (a control character, an empty path).
int handshake_request_write(struct buf *out, const struct handshake_request *request, const char *key, struct err *err);

// Whether enough of an answer has come: its head, and, after a refusal, the first KiB of the reason.
bool handshake_answer_complete(const char *data, size_t len);
// Checks the answer to that request. `protocol` gets the protocol that the server chose, "" for none. An answer other
// than 101 becomes the error for its status (401 ERR_UNAUTHORIZED, 429 ERR_THROTTLED with retry_after_ms, ...), with
// err->http_status. The message quotes `rest`, the bytes after the head.
int handshake_answer_check(const char *head, size_t len, const char *rest, size_t rest_len, const char *key,
                           const char *subprotocols, char protocol[HANDSHAKE_PROTOCOL_SIZE], struct err *err);

bool handshake_offers(const char *subprotocols, const char *name); // NULL offers nothing
int handshake_refuse_write(struct buf *out, int status, const char *message);
