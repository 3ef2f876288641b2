// SPDX-License-Identifier: Apache-2.0
// TLS for clients (OpenSSL): at least 1.2, the server's certificate and name are always checked, ALPN is http/1.1.
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Trusted certificates; parsed once, for any number of connections. Counted.
struct ws_tls;
struct ws_tls *ws_tls_new(const char *ca_pem, struct err *err); // NULL = the system's certificates
struct ws_tls *ws_tls_ref(struct ws_tls *tls);
void ws_tls_unref(struct ws_tls *tls); // accepts NULL

// One connection over a non-blocking socket, which stays the caller's.
struct ws_tls_stream;
struct ws_tls_stream *ws_tls_stream_new(struct ws_tls *tls, int fd, const char *server_name, struct err *err);
void ws_tls_stream_free(struct ws_tls_stream *s); // accepts NULL; says goodbye to the peer if the socket takes it

// 1 = done, 0 = call it again when the socket is ready (ws_tls_stream_wants_write()), negative = failed.
int ws_tls_stream_handshake(struct ws_tls_stream *s, struct err *err);
// Bytes, 0 = nothing now, negative: ERR_GONE if the peer ended the stream, ERR_IO.
int64_t ws_tls_stream_read(struct ws_tls_stream *s, void *data, size_t len, struct err *err);
bool ws_tls_stream_drained(const struct ws_tls_stream *s); // the socket reports everything that may still be read
int64_t ws_tls_stream_write(struct ws_tls_stream *s, const void *data, size_t len, struct err *err);
bool ws_tls_stream_wants_write(const struct ws_tls_stream *s); // the last call that got 0 waits to write, not to read
