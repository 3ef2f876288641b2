// SPDX-License-Identifier: Apache-2.0
// Writes CALL records from the params of JSON-RPC methods.
#pragma once

#include "common/base/json.h"
#include "common/wire/record_reader.h"

// Returns true if the method becomes a CALL record: group.call, group.info, group.stats, group.output, group.kill,
// object.put, object.get, object.pin, object.free, and what the operator does itself (group_change.h).
bool jsonrpc_call_is(const char *method);
// Sets the header (without the id of the call), the body, and the blob, which the caller unrefs. `params` may be NULL:
// none. `message` may be NULL; arguments that are in it stay there, and the head of the record is written in front of
// them. `trace`: the traceparent if params have none; "" = none. ERR_INVALID, or ERR_LIMIT if the quota is used up.
int jsonrpc_call_encode(const char *method, const struct json *params, const char *trace, struct blob *message,
                        struct quota *quota, struct record *ret, struct err *err);
