// SPDX-License-Identifier: Apache-2.0
#include "operator/local/trust.h"

#include "common/base/str.h"

#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>

bool trust_draw(char ret[TRUST_TOKEN_SIZE])
{
    unsigned char drawn[(TRUST_TOKEN_SIZE - 1) / 2];
    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn)
        return false;
    str_hex(drawn, sizeof drawn, ret);
    return true;
}

static uint64_t trust(void *ctx, const char *token, const char *ns, authority_done_fn done, void *done_ctx)
{
    const char *secret = ctx;
    struct err err = ERR_INIT;
    (void)ns;
    size_t len = secret ? strlen(secret) : 0;
    if (token && (len == 0 || strlen(token) != len || CRYPTO_memcmp(token, secret, len) != 0))
        err_set(&err, ERR_UNAUTHORIZED,
                "this token is not valid for this run: use the token in the file that cadre-local named");
    done(done_ctx, &(struct client_user){.name = "somebody on this machine", .code = true}, 0, &err);
    return 0;
}

// Returns the secret that the processes of an attempt share. With it they recognize each other on this machine.
static const char *secret(void *ctx, const struct ticket *t, struct arena *a)
{
    static char drawn[TRUST_TOKEN_SIZE];
    (void)ctx;
    if (!drawn[0] && !trust_draw(drawn))
        return NULL; // without a secret, no process fetches anything from another one
    return arena_printf(a, "%s-%s-%u", drawn, t->group_uid, t->attempt);
}

struct authority trust_authority(const char *token)
{
    return (struct authority){.open = true, .ctx = (void *)token, .client = trust, .peer_secret = secret};
}
