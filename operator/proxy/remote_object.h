// SPDX-License-Identifier: Apache-2.0
// Objects that worker processes keep, as calls see them: results that stay there (`keep`), the methods object.*, and
// references in arguments. The proxy keeps no object and no table of objects: a reference says where its object is. A
// session only remembers which references it made, to free their objects when it ends.
#pragma once

#include "common/wire/ref.h"
#include "operator/proxy/call.h"

enum { OBJECT_SESSION_PARTS = 65536 }; // that a session may have made and not freed

// Whether the call may be made: members of the head that go together, room for another object. Of object.put the modes
// are chosen; the other methods of this kind, which have a reference as their argument, become calls to the ranks that
// keep its parts: *rec, *head and *parts are about a new body then, *ret, which the caller unrefs. ROUTER_COLLECT: the
// body must be here whole for that.
int object_begin(struct session *s, struct record *rec, struct call_head *head, struct record_call *parts,
                 struct blob **ret, struct err *err);

// Sends the reference to what ranks have kept of their results, as they have said it: that lies in the slots.
// ERR_LIMIT, ERR_INTERNAL.
int object_collect(struct call *c, struct err *err);
// What nobody will have a reference to is freed.
void object_discard(struct member *m, const char *body, size_t len, bool pinned);
void object_discard_all(struct call *c);

void object_session_ends(struct session *s);
