// SPDX-License-Identifier: Apache-2.0
// Translates JSON-RPC 2.0 (subprotocol cadre.v1.json, HTTP POST) into the records of a session, and back. Text goes in,
// text comes out; no I/O. Long messages and long results are not copied. They are checked in slices, so that they do
// not delay the loop, and the namespace pays for that with its part of each turn. docs/calls.md has the methods and the
// codes of errors. Batches are refused, because many requests may be in flight anyway.
#pragma once

#include "common/wire/parts.h"
#include "common/wire/traceparent.h"
#include "operator/proxy/jsonrpc_message.h"
#include "operator/proxy/session.h"

enum { JSONRPC_ID_MAX = 128 }; // bytes of an id as the client wrote it

struct jsonrpc {
    struct session *session;         // its peer has news when there may be something to take
    char trace[TRACEPARENT_LEN + 1]; // set by the owner: the traceparent of requests without one; "" = none
    // private
    struct record_writer out;
    struct record_header head; // of the record that was taken out of `out`, with `body`
    struct parts body;
    struct json_check check; // of `body`, while `busy`
    bool busy, broken;
    struct jsonrpc_message message; // a long message that is being read
    struct list texts;              // answers that are ready to be taken
    struct map by_text;             // requests without an answer, by the text of their id; notifications have none
    struct idmap by_call;           // the same requests and notifications, by the id of their call
    uint32_t last_call;
};

// `max_bytes`: limit for answers that wait to be taken. Above it, the session is closed.
void jsonrpc_init(struct jsonrpc *j, struct router *r, const char *ns, const char *group, size_t max_bytes,
                  void *owner);
void jsonrpc_done(struct jsonrpc *j); // also ends the session

// Takes one message. The answer is a text.
void jsonrpc_input(struct jsonrpc *j, const char *text, size_t len);
// Takes a long message (jsonrpc_message.h). jsonrpc_next() continues to read it. No other message may come until
// jsonrpc_reads() is false.
void jsonrpc_input_long(struct jsonrpc *j, struct blob *blob, const char *text, size_t len);
bool jsonrpc_reads(const struct jsonrpc *j);
// Returns the next answer, which the caller takes over. False: there is none, or it is not ready.
bool jsonrpc_next(struct jsonrpc *j, struct parts *ret);
bool jsonrpc_busy(const struct jsonrpc *j); // call jsonrpc_next() again in a later turn
bool jsonrpc_idle(const struct jsonrpc *j); // nothing is in flight, and no answer waits
