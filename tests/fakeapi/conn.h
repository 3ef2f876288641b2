// SPDX-License-Identifier: Apache-2.0
// One accepted connection on the loop: bytes in, bytes out, plain or TLS.
#pragma once

#include "common/base/buf.h"
#include "common/base/loop.h"

#include <openssl/ssl.h>

struct conn;

struct conn_ops {
    void (*input)(void *ctx);  // more bytes in conn_input()
    void (*closed)(void *ctx); // by the peer, or after conn_finish(); free it now
};

// Takes the descriptor. tls: NULL = plain.
struct conn *conn_new(struct loop *loop, int fd, SSL_CTX *tls, const struct conn_ops *ops, void *ctx);
void conn_free(struct conn *c); // closes at once
struct buf *conn_input(struct conn *c);
void conn_write(struct conn *c, const char *bytes, size_t n);
void conn_finish(struct conn *c);        // closes when all is written
bool conn_resumed(const struct conn *c); // TLS went on with a session of an earlier connection
void conn_reset(struct conn *c);         // the close to come is a TCP reset
