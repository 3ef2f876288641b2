// SPDX-License-Identifier: Apache-2.0
// The params of group.call as a CALL record.
#ifndef CADRE_PROXY_JSONRPC_CALL_H
#define CADRE_PROXY_JSONRPC_CALL_H

#include "common/base/json.h"
#include "common/wire/record_reader.h"

// Sets header (but for the id of the call), body and blob, which the caller unrefs. `params` may be NULL: none.
// ERR_INVALID, or ERR_LIMIT where the quota is used up.
int jsonrpc_call_encode(const struct json *params, bool info, struct quota *quota, struct record *ret, struct err *err);

#endif
