// SPDX-License-Identifier: Apache-2.0
// Keeps the keys of the install, which all replicas share through one Secret. The Secret must exist; empty, it is
// filled once, by whichever replica is first. It is read again about once a minute, so that all follow when it changes:
// a certificate that is due is renewed by whoever notices, an emptied Secret is filled with new keys.
#ifndef CADRE_IDENTITY_VAULT_H
#define CADRE_IDENTITY_VAULT_H

#include "operator/identity/certificate.h"
#include "operator/kube/client.h"

struct vault;

struct vault_keys { // valid until the next on_keys
    const uint8_t *install;
    const char *ca_pem, *cert_pem, *key_pem;
};

struct vault_options {
    const char *ns, *name;          // of the Secret
    struct certificate_names names; // of the operator's endpoint
    int64_t reread_ms, retry_ms;    // 0 = a minute, and a second (doubling up to reread_ms)
    uint64_t seed;
    void (*on_keys)(void *ctx, const struct vault_keys *keys); // the first ones, and whenever one has changed
    // With which the Secret cannot be read, used or written now; it is tried again. What was read before stays in use.
    void (*on_error)(void *ctx, const struct err *err);
    void *ctx;
};

// The client must outlive it; the options are copied.
struct vault *vault_new(struct loop *loop, struct kube_client *client, const struct vault_options *options);
void vault_free(struct vault *v);                               // not from inside a callback
const struct vault_keys *vault_get_keys(const struct vault *v); // NULL: none yet

#endif
