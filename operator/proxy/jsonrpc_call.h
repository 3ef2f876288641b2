// SPDX-License-Identifier: Apache-2.0
// The params of group.call and of the methods that the proxy has itself as a CALL record.
#ifndef CADRE_PROXY_JSONRPC_CALL_H
#define CADRE_PROXY_JSONRPC_CALL_H

#include "common/base/json.h"
#include "common/wire/record_reader.h"

enum jsonrpc_kind { JSONRPC_CALL = 1, JSONRPC_INFO = 2, JSONRPC_KILL = 4, JSONRPC_STATS = 8 };

const char *jsonrpc_kind_name(enum jsonrpc_kind kind); // "group.call"
// Sets header (but for the id of the call), body and blob, which the caller unrefs. `params` may be NULL: none.
// ERR_INVALID, or ERR_LIMIT where the quota is used up.
int jsonrpc_call_encode(enum jsonrpc_kind kind, const struct json *params, struct quota *quota, struct record *ret,
                        struct err *err);
// The same of what is done by the operator itself (errand.h): the params are its arguments.
int jsonrpc_errand_encode(const char *method, const struct json *params, struct quota *quota, struct record *ret,
                          struct err *err);

#endif
