// SPDX-License-Identifier: Apache-2.0
// The params of the methods that become calls, as CALL records.
#pragma once

#include "common/base/json.h"
#include "common/wire/record_reader.h"

// group.call, group.info, group.stats, group.output, group.kill, object.put, object.get, object.pin, object.free, and
// what the operator does itself (group_change.h).
bool jsonrpc_call_is(const char *method);
// Sets header (but for the id of the call), body and blob, which the caller unrefs. `params` may be NULL: none.
// ERR_INVALID, or ERR_LIMIT where the quota is used up. Arguments that lie in `message` (which may be NULL) stay there,
// and the head of the record is written in front of them.
// `trace`: the traceparent where params have none; "" = none.
int jsonrpc_call_encode(const char *method, const struct json *params, const char *trace, struct blob *message,
                        struct quota *quota, struct record *ret, struct err *err);
