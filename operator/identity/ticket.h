// SPDX-License-Identifier: Apache-2.0
// Values that the operator's replicas derive from the install key instead of telling each other: tickets of worker
// processes, and the secret that the processes of an attempt share. Each kind has its own domain, so that one cannot be
// used as the other. Pure.
#pragma once

#include "operator/gateway/authority.h"

enum { INSTALL_KEY_SIZE = 32, TICKET_LEN_MAX = 160 };

// "<group UID>.<attempt>.<rank>.<serial>.<HMAC-SHA256>", fit for URLs and environments. NULL: the UID is empty or has
// other characters than letters, digits, '-' and '_'.
const char *ticket_write(const uint8_t key[INSTALL_KEY_SIZE], const struct ticket *t, struct arena *a);
// ERR_UNAUTHORIZED: not written with this key.
int ticket_read(const uint8_t key[INSTALL_KEY_SIZE], const char *text, struct ticket *ret, struct err *err);

const char *peer_secret(const uint8_t key[INSTALL_KEY_SIZE], const char *group_uid, uint32_t attempt, struct arena *a);

// With which a replica of the operator shows the others that it has the key.
const char *replica_proof(const uint8_t key[INSTALL_KEY_SIZE], const char *name, const char *instance, struct arena *a);

// What names the key without giving it away, in hex.
const char *install_key_id(const uint8_t key[INSTALL_KEY_SIZE], struct arena *a);
