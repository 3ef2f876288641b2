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

// After the WELCOME: where the proxy says so and can be reached so, from now on what it lends is understood. True: it
// was; then the caller may offer memory of its own by share_offer(). Client and reader must outlive ws_sharing_end().
bool ws_sharing_begin(struct ws_sharing *s, const struct json *welcome, struct ws_client *client,
                      struct record_reader *reader);
void ws_sharing_end(struct ws_sharing *s); // also of one that is all zero

static inline bool ws_sharing_is(const struct record *rec)
{
    return rec->h.type == RECORD_MEMORY || rec->h.type == RECORD_RETURN;
}
int ws_sharing_record(struct ws_sharing *s, const struct record *rec, struct err *err);
