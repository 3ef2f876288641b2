// SPDX-License-Identifier: Apache-2.0
// Certificate, key and rules of a TLS server.
#pragma once

#include "common/base/err.h"

#include <openssl/ssl.h>

int ws_server_tls_check(const char *cert_pem, const char *key_pem, struct err *err);
int ws_server_tls_set(SSL_CTX *ctx, const char *cert_pem, const char *key_pem, struct err *err);
void ws_server_tls_prepare(SSL_CTX *ctx);
