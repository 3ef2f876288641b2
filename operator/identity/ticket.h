// SPDX-License-Identifier: Apache-2.0
// Values that the operator's replicas derive from the install key instead of telling each other: tickets of worker
// processes, and the secret that the processes of an attempt share. Each kind has its own domain, so that one cannot be
// used as the other. Pure.
#pragma once

#include "operator/gateway/authority.h"

enum { INSTALL_KEY_SIZE = 32, TICKET_LEN_MAX = 160 };

// Returns "<group UID>.<attempt>.<rank>.<serial>.<HMAC-SHA256>", which URLs and environment variables can hold. NULL:
// the UID is empty or has other characters than letters, digits, '-' and '_'.
const char *ticket_write(const uint8_t key[INSTALL_KEY_SIZE], const struct ticket *t, struct arena *a);
// ERR_UNAUTHORIZED: the ticket was not written with this key.
int ticket_read(const uint8_t key[INSTALL_KEY_SIZE], const char *text, struct ticket *ret, struct err *err);

const char *peer_secret(const uint8_t key[INSTALL_KEY_SIZE], const char *group_uid, uint32_t attempt, struct arena *a);

// Returns the proof with which a replica of the operator shows to the others that it has the key.
const char *replica_proof(const uint8_t key[INSTALL_KEY_SIZE], const char *name, const char *instance, struct arena *a);

// Returns an id of the key, in hex. The id does not reveal the key.
const char *install_key_id(const uint8_t key[INSTALL_KEY_SIZE], struct arena *a);
