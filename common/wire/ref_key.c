// SPDX-License-Identifier: Apache-2.0
#include "common/wire/ref.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAC_SIZE = 32 };

void ref_key(const char *secret, uint64_t id, int64_t until, char out[REF_KEY_SIZE])
{
    char text[96]; // the domain in front: no text of another domain is one of this
    unsigned char mac[MAC_SIZE];
    size_t n = 0;
    int len = snprintf(text, sizeof text, "cadre.dev/object/v1/%016" PRIx64 ".%" PRId64, id, until);
    if (!EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, secret, strlen(secret), (const unsigned char *)text, (size_t)len,
                   mac, sizeof mac, &n) ||
        n != sizeof mac)
        abort(); // no memory: SHA-256 itself is always there
    for (size_t i = 0; i < sizeof mac; i++) {
        out[2 * i] = "0123456789abcdef"[mac[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[mac[i] & 15];
    }
    out[2 * MAC_SIZE] = '\0';
}

bool ref_key_good(const char *secret, uint64_t id, int64_t until, const char *key, size_t len)
{
    char want[REF_KEY_SIZE];
    ref_key(secret, id, until, want);
    return len == sizeof want - 1 && CRYPTO_memcmp(want, key, len) == 0;
}
