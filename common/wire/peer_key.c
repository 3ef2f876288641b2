// SPDX-License-Identifier: Apache-2.0
#include "common/wire/peer_key.h"

#include "common/base/str.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAC_SIZE = 32 };

void peer_key(const char *secret, const char *text, char out[PEER_KEY_SIZE])
{
    unsigned char mac[MAC_SIZE];
    size_t n = 0;
    if (!EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, secret, strlen(secret), (const unsigned char *)text,
                   strlen(text), mac, sizeof mac, &n) ||
        n != sizeof mac)
        abort(); // no memory: SHA-256 itself is always available
    str_hex(mac, sizeof mac, out);
}

bool peer_key_good(const char *secret, const char *text, const char *key, size_t len)
{
    char want[PEER_KEY_SIZE];
    peer_key(secret, text, want);
    return len == sizeof want - 1 && CRYPTO_memcmp(want, key, len) == 0;
}

void peer_rendezvous_text(uint64_t id, uint32_t index, int64_t until, char out[PEER_TEXT_SIZE])
{
    snprintf(out, PEER_TEXT_SIZE, "cadre.dev/meeting/v1/%016" PRIx64 ".%" PRIu32 ".%" PRId64, id, index, until);
}
