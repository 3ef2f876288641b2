// SPDX-License-Identifier: Apache-2.0
// Long bodies by reference with the peers of this host, where the gateway was told to (docs/protocol.md, "Shared
// memory"): the connection's part of it.
#ifndef CADRE_GATEWAY_SHARING_H
#define CADRE_GATEWAY_SHARING_H

#include "common/base/json_writer.h"
#include "operator/gateway/connection.h"

// Into a WELCOME: what the peer needs to know for it, where it is on a Unix socket. From then on it may do so.
void sharing_begin(struct connection *c, struct json_writer *w);
void sharing_end(struct connection *c); // also where it did not begin
// A MEMORY or RETURN. Negative: the peer is wrong.
int sharing_record(struct connection *c, const struct record *rec, struct err *err);
static inline bool sharing_is(const struct record *rec)
{
    return rec->h.type == RECORD_MEMORY || rec->h.type == RECORD_RETURN;
}

#endif
