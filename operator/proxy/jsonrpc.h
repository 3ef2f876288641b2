// SPDX-License-Identifier: Apache-2.0
// A client that speaks JSON-RPC 2.0 (subprotocol cadre.v1.json, HTTP POST) in front of a session that speaks
// records. Text in, text out; no I/O. Long messages and long results are not copied. They are checked in slices, for
// which the namespace pays with its turns, so that they do not hold up the loop. docs/calls.md has the methods and the
// codes of errors. Batches are refused: many requests may be in flight anyway.
#pragma once

#include "common/wire/parts.h"
#include "common/wire/traceparent.h"
#include "operator/proxy/jsonrpc_message.h"
#include "operator/proxy/session.h"

enum { JSONRPC_ID_MAX = 128 }; // bytes of an id as it is written

struct jsonrpc {
    struct session *session;         // its peer tells when there may be something to take
    char trace[TRACEPARENT_LEN + 1]; // set by the owner: of requests that say none; "" = none
    // private
    struct record_writer out;
    struct record_header head; // of what was taken out of it ...
    struct parts body;
    struct json_check check; // ... and is being looked at, while it is `busy`
    bool busy, broken;
    struct jsonrpc_message message; // a long one that is being read
    struct list texts;              // ready to be taken
    struct map by_text;             // requests that are not answered, by the text of their id ...
    struct idmap by_call;           // ... and all of them by the id of their call
    uint32_t last_call;
};

// `max_bytes`: of answers that wait to be taken; then the session is closed.
void jsonrpc_init(struct jsonrpc *j, struct router *r, const char *ns, const char *group, size_t max_bytes,
                  void *owner);
void jsonrpc_done(struct jsonrpc *j); // ends the session, too

// One message; everything is answered by text.
void jsonrpc_input(struct jsonrpc *j, const char *text, size_t len);
// The same of a long one (jsonrpc_message.h), which jsonrpc_next() goes on with. Until it `reads` no more, no other
// message may come.
void jsonrpc_input_long(struct jsonrpc *j, struct blob *blob, const char *text, size_t len);
bool jsonrpc_reads(const struct jsonrpc *j);
// An answer, which the caller takes over. False: there is none, or not yet.
bool jsonrpc_next(struct jsonrpc *j, struct parts *ret);
bool jsonrpc_busy(const struct jsonrpc *j); // jsonrpc_next() is to be called again in a later turn of its namespace
bool jsonrpc_idle(const struct jsonrpc *j); // nothing is in flight or to be taken
