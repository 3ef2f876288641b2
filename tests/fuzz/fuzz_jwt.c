// SPDX-License-Identifier: Apache-2.0
// Tokens as a peer shows them. 'k': a JWKS, the rest of the input; else a token that is checked with one key. Each
// refusal has a message. No signature is right by chance.
#include "common/base/str.h"
#include "operator/identity/jwt.h"
#include "operator/identity/ticket.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The key of RFC 7515, A.3. The RFC prints its private half too, but no fuzzer finds out how to use it.
static const char known[] = "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"a\","
                            "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
                            "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}]}";

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void read_keys(const char *text, size_t len)
{
    struct jwks *j = NULL;
    struct err err = ERR_INIT;
    if (jwks_parse(text, len, &j, &err) < 0)
        must(!j && err.msg[0]);
    else
        must(jwks_count(j) > 0);
    jwks_free(j);
}

static void read_token(const char *token)
{
    static const uint8_t key[INSTALL_KEY_SIZE];
    struct arena a = ARENA_INIT;
    struct jwks *j = NULL;
    struct err err = ERR_INIT;
    struct pod_claims claims;
    struct ticket ticket;
    must(jwks_parse(known, strlen(known), &j, &err) == 0);
    int r = jwt_verify(j, token, &(struct jwt_rules){.audience = "cadre", .now_ms = 1800000000000}, &a, &claims, &err);
    must((r == ERR_UNAUTHORIZED || r == ERR_NOT_FOUND) && err.code == r && str_starts(err.msg, "the token is refused"));
    must(jwt_expires_ms(token) >= 0);
    if (ticket_read(key, token, &ticket, &err) == 0)
        must(str_eq(ticket_write(key, &ticket, &a), token));
    jwks_free(j);
    arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] == 'k') {
        read_keys((const char *)data + 1, size - 1);
        return 0;
    }
    char *token = strndup((const char *)data, size);
    must(token);
    read_token(token);
    free(token);
    return 0;
}
