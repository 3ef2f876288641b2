// SPDX-License-Identifier: Apache-2.0
// The data of the Secret with all keys of an install: what it contains, and what has to be written into it. Pure except
// for the kernel's random numbers.
//   install.key        32 random bytes: tickets and peer secrets are derived from it
//   ca.crt, ca.key     our own CA, 10 years
//   tls.crt, tls.key   the certificate of the operator's endpoint, 90 days, renewed after two thirds of that time
// Certificates without a ca.key come from elsewhere (such as cert-manager). The operator uses them, and writes them
// only to restore missing ones.
#pragma once

#include "operator/identity/certificate.h"
#include "operator/identity/ticket.h"

struct keys {
    uint8_t install[INSTALL_KEY_SIZE];
    bool has_install;
    const char *resource_version;
    const char *metadata;                      // JSON: name, and what others know the Secret by
    const char *ca_cert, *ca_key, *cert, *key; // PEM, NULL = missing
};

// The Secret as the API server gives it. ERR_INVALID names the entry that cannot be.
int keys_decode(const char *secret, size_t len, struct arena *a, struct keys *ret, struct err *err);

// *ret: the keys with all that was missing or due, for those DNS names (more in the certificate do no harm). What is
// missing is what `memory` has, where the rest is of the same keys, so that pods which trust those go on; memory NULL:
// nothing was in use so far. What is there and differs from the memory is used as it is.
// *ret_patch: the merge patch that writes it, unless the Secret has changed meanwhile; NULL = nothing to write.
// ERR_INVALID: what somebody has put there cannot be used.
int keys_complete(const struct keys *k, const struct keys *memory, struct certificate_names names, int64_t now_ms,
                  struct arena *a, struct keys *ret, const char **ret_patch, struct err *err);

// Is all there that pods and their processes trust? What else may be missing is made without their noticing.
bool keys_trusted(const struct keys *k);
// The entries that `before` lacks and that memory has given: "ca.key, tls.key". NULL: none.
const char *keys_put_back(const struct keys *before, const struct keys *memory, const struct keys *after,
                          struct arena *a);
bool keys_equal(const struct keys *a, const struct keys *b); // but for the version and the metadata

// The same as long as agents and workers that were let in with one of them are let in with the other: of the
// authority's certificate and of the install key. It gives neither away.
const char *keys_id(const struct keys *k, struct arena *a);

// The Secret without data, as it is applied where there is none; `metadata` is the former one's, or NULL.
const char *keys_secret(const char *name, const char *metadata, struct arena *a);
