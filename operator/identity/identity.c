// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/identity.h"

#include "common/base/mem.h"
#include "operator/identity/access.h"
#include "operator/identity/keyring.h"
#include "operator/identity/ticket.h"

#include <stdlib.h>

#define AUDIENCE "cadre"

struct identity {
    struct access *access;
    struct keyring *keyring;
    struct vault *vault;
};

static int check_token(void *ctx, const char *token, struct err *err)
{
    const struct identity *i = ctx;
    return keyring_check(i->keyring, token, err);
}

struct identity *identity_new(struct loop *loop, struct kube_client *client, const struct vault_options *options)
{
    struct identity *i = xcalloc(1, sizeof *i);
    i->access =
        access_new(loop, client, &(struct access_options){.audience = AUDIENCE, .check = check_token, .ctx = i});
    i->keyring = keyring_new(
        loop, client,
        &(struct keyring_options){
            .audience = AUDIENCE, .seed = options->seed + 1, .on_error = options->on_error, .ctx = options->ctx});
    i->vault = vault_new(loop, client, options);
    return i;
}

void identity_free(struct identity *i)
{
    if (!i)
        return;
    access_free(i->access);
    keyring_free(i->keyring);
    vault_free(i->vault);
    free(i);
}

struct vault *identity_vault(const struct identity *i)
{
    return i->vault;
}

// --- what the gateway asks

static uint64_t ask_client(void *ctx, const char *token, const char *ns, authority_done_fn done, void *done_ctx)
{
    struct identity *i = ctx;
    return access_ask(i->access, token, ns, done, done_ctx);
}

static void cancel(void *ctx, uint64_t id)
{
    struct identity *i = ctx;
    access_cancel(i->access, id);
}

static int pod(void *ctx, const char *token, struct arena *a, struct pod_claims *ret, struct err *err)
{
    struct identity *i = ctx;
    return keyring_pod(i->keyring, token, a, ret, err);
}

static int ticket(void *ctx, const char *text, struct ticket *ret, struct err *err)
{
    struct identity *i = ctx;
    const struct vault_keys *keys = vault_get_keys(i->vault);
    if (!keys)
        return err_set(err, ERR_UNAVAILABLE, "the keys of this install have not been read yet: try again");
    int r = ticket_read(keys->install, text, ret, err);
    for (unsigned n = 0; r < 0 && n < keys->n_former; n++)
        if (ticket_read(keys->former[n], text, ret, &(struct err){0}) == 0) {
            ret->former = n + 1;
            r = 0;
        }
    return r;
}

// A process that was admitted with a former key keeps this key, as the other processes of its attempt do.
static const uint8_t *key_of(const struct identity *i, const struct ticket *t)
{
    const struct vault_keys *keys = vault_get_keys(i->vault);
    if (!keys || t->former > keys->n_former)
        return NULL;
    return t->former ? keys->former[t->former - 1] : keys->install;
}

static const char *ticket_text(void *ctx, const struct ticket *t, struct arena *a)
{
    const uint8_t *key = key_of(ctx, t);
    return key ? ticket_write(key, t, a) : NULL;
}

static const char *secret_of_peers(void *ctx, const struct ticket *t, struct arena *a)
{
    const uint8_t *key = key_of(ctx, t);
    return key ? peer_secret(key, t->group_uid, t->attempt, a) : NULL;
}

static const char *proof_of_replica(void *ctx, const char *name, const char *instance, struct arena *a)
{
    const struct identity *i = ctx;
    const struct vault_keys *keys = vault_get_keys(i->vault);
    return keys ? replica_proof(keys->install, name, instance, a) : NULL;
}

void identity_retry_now(struct identity *i)
{
    vault_retry_now(i->vault);
    keyring_retry_now(i->keyring);
}

struct authority identity_authority(struct identity *i)
{
    return (struct authority){
        .ctx = i,
        .client = ask_client,
        .cancel = cancel,
        .pod = pod,
        .ticket = ticket,
        .ticket_text = ticket_text,
        .peer_secret = secret_of_peers,
        .replica_proof = proof_of_replica,
    };
}
