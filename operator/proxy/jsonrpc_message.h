// SPDX-License-Identifier: Apache-2.0
// A JSON-RPC message that arrived: its text and its tree. A short message is parsed at once. A long one is checked in
// slices, and the namespace pays for that with its part of each turn. Then all of it is parsed except the long values,
// which stay where they are.
#pragma once

#include "common/base/json_check.h"
#include "operator/proxy/tenant.h"

enum {
    JSONRPC_LONG = 128 * 1024, // a message up to this length is read in one piece: about a millisecond
    // The most bytes of one parameter, and of all parameters of a long message together. The parameters args, perRank,
    // value and ref do not count.
    JSONRPC_HEAD_MAX = 16 * 1024
};

struct jsonrpc_message { // {0}: there is none
    const char *text;
    size_t len;
    // Contains a long message, behind JSONRPC_HEAD_MAX bytes that are free. A record can therefore be made of it
    // without a copy. NULL: the message is short, and belongs to the caller.
    struct blob *blob;
    struct json_check check; // how much of it was checked
};

// Begins a long message. Takes a reference to the blob.
void jsonrpc_message_begin(struct jsonrpc_message *m, struct blob *blob, const char *text, size_t len);
void jsonrpc_message_done(struct jsonrpc_message *m);
// Returns 1 if all of it was checked, 0 if the namespace has used up its part of the turn, negative if it is not JSON.
int jsonrpc_message_read(struct jsonrpc_message *m, struct tenant *t, struct err *err);
// Returns the tree. It lacks what is inside args, perRank and value, and inside long values.
int jsonrpc_message_parse(const struct jsonrpc_message *m, struct arena *a, struct json **ret, struct err *err);
