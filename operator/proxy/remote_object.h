// SPDX-License-Identifier: Apache-2.0
// Objects that worker processes keep, as calls see them: results that stay there (`keep`), the methods object.*, and
// references in arguments. The proxy keeps no object and no table of objects: a reference says where its object is. A
// session only remembers the references that it made, to free their objects when it ends.
#pragma once

#include "common/wire/ref.h"
#include "operator/proxy/call.h"

enum { OBJECT_SESSION_PARTS = 65536 }; // objects of a session that are not freed

// Checks that members of the head fit together, and that there is room for another object. Chooses the modes of
// object.put. Turns the other methods object.*, which have a reference as their argument, into calls of the ranks that
// keep its parts: then *rec, *head and *parts describe a new body, *ret, which the caller unrefs. ROUTER_COLLECT: the
// body must be here whole.
int object_begin(struct session *s, struct record *rec, struct call_head *head, struct record_call *parts,
                 struct blob **ret, struct err *err);

// For a new call with this body. If it is object.free, its session forgets the reference when the call is answered with
// a result. After an error, the end of the session still frees the objects.
void object_note_free(struct call *c, struct blob *body);
void object_free_ends(struct call *c); // object.free is answered

// Sends a reference to what the ranks keep. Their results say what that is. ERR_LIMIT, ERR_INTERNAL.
int object_collect(struct call *c, struct err *err);
// Frees objects that nobody will have a reference to.
void object_discard(struct member *m, const char *body, size_t len, bool pinned);
void object_discard_all(struct call *c);

void object_session_ends(struct session *s);
