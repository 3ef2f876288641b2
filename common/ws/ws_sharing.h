// SPDX-License-Identifier: Apache-2.0
// A client's part of shared memory with a proxy on this host (docs/protocol.md, "Shared memory").
#pragma once

#include "common/base/json.h"
#include "common/wire/record_reader.h"
#include "common/ws/memory.h"
#include "common/ws/ws_client.h"

struct ws_sharing {
    struct share share;       // share.lends: data in `memory` goes by reference
    struct ws_client *client; // NULL: nothing is shared
    bool own;                 // pools of the proxy's peers have it (pool.h); set by the owner
};

// The memory from which a client sends; made if `*own` is NULL. NULL: there is none.
#define WS_SHARING_MEMORY ((size_t)256 << 20)
struct memory *ws_sharing_memory(struct memory **own);

// Call it after the WELCOME. If the proxy offers shared memory and its memory can be opened here, memory that it lends
// is understood from now on. Returns true in this case; then the caller may offer its own memory. Client and reader
// must outlive ws_sharing_end().
bool ws_sharing_begin(struct ws_sharing *s, const struct json *welcome, struct ws_client *client,
                      struct record_reader *reader);
void ws_sharing_offer(struct ws_sharing *s, struct memory **own);
// A peer to which memory of `*own` was lent may read it after the connection has ended. So nothing else may be put
// there, and `*own` becomes NULL. `s` may be all zero.
void ws_sharing_end(struct ws_sharing *s, struct memory **own);

static inline bool ws_sharing_is(const struct record *rec)
{
    return rec->h.type == RECORD_MEMORY || rec->h.type == RECORD_RETURN;
}
int ws_sharing_record(struct ws_sharing *s, const struct record *rec, struct err *err);
