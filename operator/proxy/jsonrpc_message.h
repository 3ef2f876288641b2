// SPDX-License-Identifier: Apache-2.0
// A JSON-RPC message that came in: its tree, and where it lies. A short one is parsed at once. A long one is checked in
// slices, for which the namespace pays with its turns; then only what is not a long value is parsed, and the long
// values stay where they are.
#pragma once

#include "common/base/json_check.h"
#include "operator/proxy/tenant.h"

enum {
    JSONRPC_LONG = 128 * 1024,   // a message up to this is read in one piece: about a millisecond
    JSONRPC_HEAD_MAX = 16 * 1024 // bytes of a parameter that is not args, perRank, value or ref; and, in a message
                                 // that is long, of all of them together
};

struct jsonrpc_message { // {0}: there is none
    const char *text;
    size_t len;
    // Of a long one: it lies in there, behind JSONRPC_HEAD_MAX bytes that are free, so that a record can be made of it
    // without a copy. NULL: it is short, and the caller's.
    struct blob *blob;
    struct json_check check; // so much of it was checked
};

// Of a long one; takes a reference.
void jsonrpc_message_begin(struct jsonrpc_message *m, struct blob *blob, const char *text, size_t len);
void jsonrpc_message_done(struct jsonrpc_message *m);
// 1: it was checked. 0: its namespace has had its turn. Negative: it is not JSON.
int jsonrpc_message_read(struct jsonrpc_message *m, struct tenant *t, struct err *err);
// The tree. What it does not have are the insides of args, perRank and value, and of long values.
int jsonrpc_message_parse(const struct jsonrpc_message *m, struct arena *a, struct json **ret, struct err *err);
