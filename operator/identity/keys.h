// SPDX-License-Identifier: Apache-2.0
// The data of the Secret with all keys of an install. It reads the Secret, and decides what to write into it. Pure
// except for the kernel's random numbers.
//   install.key        32 random bytes, from which tickets and peer secrets are derived
//   ca.crt, ca.key     the operator's own CA, 10 years
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
    const char *metadata;                      // JSON: the name, and the labels and annotations that others need
    const char *ca_cert, *ca_key, *cert, *key; // PEM, NULL = missing
};

// Reads the Secret as the API server returns it. ERR_INVALID names the bad entry.
int keys_decode(const char *secret, size_t len, struct arena *a, struct keys *ret, struct err *err);

// Completes the keys into *ret: adds missing ones, and renews a certificate that is due or lacks one of `names`. If the
// other entries belong to the keys in `memory`, missing ones come from there, so that pods which trust them continue.
// memory NULL: no keys were in use so far. An entry that differs from the memory is used as it is.
// *ret_patch is the merge patch that writes the keys, unless the Secret has changed meanwhile; NULL = nothing to write.
// ERR_INVALID: an entry that somebody wrote cannot be used.
int keys_complete(const struct keys *k, const struct keys *memory, struct certificate_names names, int64_t now_ms,
                  struct arena *a, struct keys *ret, const char **ret_patch, struct err *err);

// Returns true if all keys that pods and their processes trust are there. The pods do not notice if the other keys are
// replaced.
bool keys_trusted(const struct keys *k);
// Returns the entries that `before` lacks and that came from the memory: "ca.key, tls.key". NULL: none.
const char *keys_put_back(const struct keys *before, const struct keys *memory, const struct keys *after,
                          struct arena *a);
bool keys_equal(const struct keys *a, const struct keys *b); // compares all but the version and the metadata

// Returns an id of the authority's certificate and of the install key. Keys with the same id admit the same agents and
// workers. The id does not reveal the keys.
const char *keys_id(const struct keys *k, struct arena *a);

// Returns the Secret without data, to apply if there is none. `metadata` is from the former Secret, or NULL.
const char *keys_secret(const char *name, const char *metadata, struct arena *a);
