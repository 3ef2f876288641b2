// SPDX-License-Identifier: Apache-2.0
// Proofs between processes that share the secret of an attempt: HMAC-SHA256 of a text. The text begins with its domain,
// so a proof of one domain is not valid in another.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PEER_KEY_SIZE = 65, PEER_TEXT_SIZE = 96 }; // hex, and a NUL; a text

void peer_key(const char *secret, const char *text, char out[PEER_KEY_SIZE]);
bool peer_key_good(const char *secret, const char *text, const char *key, size_t len);

// The text that lets member `index` into a rendezvous until a time (ms since 1970). docs/protocol.md, "Rendezvous".
void peer_rendezvous_text(uint64_t id, uint32_t index, int64_t until, char out[PEER_TEXT_SIZE]);
