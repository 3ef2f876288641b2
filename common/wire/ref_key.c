// SPDX-License-Identifier: Apache-2.0
#include "common/wire/ref.h"

#include "common/wire/peer_key.h"

#include <inttypes.h>
#include <stdio.h>

static void text_of(uint64_t id, int64_t until, char out[96])
{
    snprintf(out, 96, "cadre.dev/object/v1/%016" PRIx64 ".%" PRId64, id, until);
}

void ref_key(const char *secret, uint64_t id, int64_t until, char out[REF_KEY_SIZE])
{
    char text[96];
    text_of(id, until, text);
    peer_key(secret, text, out);
}

bool ref_key_good(const char *secret, uint64_t id, int64_t until, const char *key, size_t len)
{
    char text[96];
    text_of(id, until, text);
    return peer_key_good(secret, text, key, len);
}
