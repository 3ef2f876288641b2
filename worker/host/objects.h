// SPDX-License-Identifier: Apache-2.0
// The objects that this process keeps for others: the store, the process's name in references, and the socket where
// other workers fetch the objects of their references. One thread, the loop's.
#pragma once

#include "common/base/buf.h"
#include "common/base/loop.h"
#include "common/wire/call_head.h"
#include "common/wire/record.h"
#include "common/wire/ref.h"
#include "worker/host/object_store.h"

struct object_server;
struct rendezvous;
struct progress;

struct objects_config {
    struct loop *loop;
    const char *group; // UID of the WorkerGroup; NULL = none, and nobody can refer to objects here. Borrowed
    uint32_t attempt, rank;
    size_t store_bytes;
    size_t call_bytes;             // limit for all objects in the arguments of one call
    bool local;                    // only processes of this machine may connect
    int port;                      // 0 = a free port
    struct rendezvous *rendezvous; // for communicators; NULL = none. Outlives the objects
    struct progress *progress;     // of transfers. Outlives the objects
    struct rank_device *device;    // outlives the objects
};

struct objects { // read only
    struct objects_config config;
    struct object_store *store;
    struct object_server *server; // NULL = it cannot listen
};

// If the server cannot listen, the objects work without it, and `why` says why not.
struct objects *objects_new(const struct objects_config *config, struct err *why);
void objects_free(struct objects *o);      // accepts NULL
int objects_port(const struct objects *o); // 0 = others cannot fetch objects here
// The secret of the attempt, from WELCOME.
void objects_secret(struct objects *o, const char *secret);
// Returns true if a reference names this process.
bool objects_is_own(const struct objects *o, const char *uid, uint32_t attempt, uint32_t rank);

enum ref_kind objects_kind(const struct kept_object *kept);
// Keeps a result. A reference to it replaces the body. `values`: the part on the device, NULL = none; takes a reference
// to it. ERR_LIMIT: there is no room, and the body is unchanged.
int objects_keep(struct objects *o, const void *owner, bool pinned, struct buf *body, struct region *values,
                 struct err *err);

struct objects_answer {
    struct blob *blob;     // the caller owns the reference; NULL = the answer is `text`
    size_t offset, len;    // of what is in the blob
    struct region *values; // the rest, on the device; the caller owns the reference; NULL = none
    char text[96];
};

bool objects_method(const struct call_head *head); // it is one of the methods below
// Serves object.put, object.get, object.pin and object.free. The arguments are the value to keep, or a reference; this
// process has at most one part of it. `body` is the body of the CALL, and `call` points into it.
int objects_serve(struct objects *o, const void *owner, const struct call_head *head, struct blob *body,
                  const struct record_call *call, struct objects_answer *ret, struct err *err);
// A FREE record.
void objects_release(struct objects *o, const char *json, size_t len);
