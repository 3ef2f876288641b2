// SPDX-License-Identifier: Apache-2.0
// Requests of a client about a group that are not calls: no worker runs a method. The proxy answers group.info,
// group.stats and group.output itself. A kill (kill.h) and a group change (group_change.h) are answered later.
#pragma once

#include "common/wire/call_head.h"
#include "common/wire/record_reader.h"
#include "operator/proxy/session_state.h"

// Returns true if the method is one of these requests. Names of a class's methods have no dot.
bool group_request_is(const struct call_head *head);
// Returns true if an object is deleted when this request is late. The calls of a client must not delay it, so no
// number of calls refuses it. GROUP_CHANGES_MAX does.
bool group_request_keeps(const struct call_head *head);
// Answers the request, or notes it. ROUTER_COLLECT: the record must be here whole. Negative: the caller refuses the
// request with `err`, and nothing was noted.
int group_request_begin(struct session *s, const struct record *rec, const struct call_head *head,
                        const struct record_call *parts, struct err *err);
// Returns true if the client has used the id for a request that is not answered.
bool group_request_pending(const struct session *s, uint32_t id);
// False: there is none with this id, or it cannot be canceled.
bool group_request_cancel(struct session *s, uint32_t id);
void group_requests_abandon(struct session *s); // the session ends
