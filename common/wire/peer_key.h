// SPDX-License-Identifier: Apache-2.0
// Proofs between the processes that share the secret of an attempt: HMAC-SHA256 of a text, which begins with its
// domain, so that no text of one domain is one of another.
#ifndef CADRE_WIRE_PEER_KEY_H
#define CADRE_WIRE_PEER_KEY_H

#include <stdbool.h>
#include <stddef.h>

enum { PEER_KEY_SIZE = 65 }; // hex, and a NUL

void peer_key(const char *secret, const char *text, char out[PEER_KEY_SIZE]);
bool peer_key_good(const char *secret, const char *text, const char *key, size_t len);

#endif
