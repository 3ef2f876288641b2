// SPDX-License-Identifier: Apache-2.0
// A client's part of shared memory with a proxy on this host (docs/protocol.md, "Shared memory").
#pragma once

#include "common/base/json.h"
#include "common/wire/record_reader.h"
#include "common/ws/memory.h"
#include "common/ws/ws_client.h"

struct ws_sharing {
    struct share share;       // share.lends: what is in `memory` goes by reference
    struct ws_client *client; // NULL: nothing is shared
    bool own;                 // pools of the proxy's peers have it (pool.h); set by the owner
};

// Of a client, for what it sends: made where `*own` is NULL. NULL: there is none.
#define WS_SHARING_MEMORY ((size_t)256 << 20)
struct memory *ws_sharing_memory(struct memory **own);

// After the WELCOME: where the proxy says so and can be reached so, from now on what it lends is understood. True: it
// was; then the caller may offer memory of its own. Client and reader must outlive ws_sharing_end().
bool ws_sharing_begin(struct ws_sharing *s, const struct json *welcome, struct ws_client *client,
                      struct record_reader *reader);
void ws_sharing_offer(struct ws_sharing *s, struct memory **own);
// Who was lent something of `*own` may read it after the connection, so nothing else comes to lie there: then `*own`
// becomes NULL. Also of one that is all zero.
void ws_sharing_end(struct ws_sharing *s, struct memory **own);

static inline bool ws_sharing_is(const struct record *rec)
{
    return rec->h.type == RECORD_MEMORY || rec->h.type == RECORD_RETURN;
}
int ws_sharing_record(struct ws_sharing *s, const struct record *rec, struct err *err);
