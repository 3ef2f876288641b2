// SPDX-License-Identifier: Apache-2.0
// What this process keeps for others: its store, its name in references, and the socket where other workers fetch
// objects that they have a reference to. One thread, the loop's.
#pragma once

#include "common/base/buf.h"
#include "common/base/loop.h"
#include "common/wire/call_head.h"
#include "common/wire/record.h"
#include "worker/host/object_store.h"

struct object_server;
struct rendezvous;
struct progress;

struct objects_config {
    struct loop *loop;
    const char *group; // UID of the WorkerGroup; NULL = none: nobody can refer to anything here. Borrowed
    uint32_t attempt, rank;
    size_t store_bytes;
    size_t call_bytes;             // of all objects in the arguments of one call
    bool local;                    // only processes of this machine are let in
    int port;                      // 0 = one that is free
    struct rendezvous *rendezvous; // of communicators; NULL = none. Outlives the objects
    struct progress *progress;     // of transfers, likewise
    struct rank_device *device;    // likewise
};

struct objects { // to be read only
    struct objects_config config;
    struct store *store;
    struct object_server *server; // NULL = it cannot listen
};

// Where it cannot listen it goes on without that; `why` says why not.
struct objects *objects_new(const struct objects_config *config, struct err *why);
void objects_free(struct objects *o);      // accepts NULL
int objects_port(const struct objects *o); // 0 = others get nothing from here
// The secret of the attempt, of a WELCOME.
void objects_secret(struct objects *o, const char *secret);
// An object of this very process, if the reference names one.
bool objects_is_own(const struct objects *o, const char *uid, uint32_t attempt, uint32_t rank);

// Keeps a result. A reference to it replaces the body. `values`: the part on the device, NULL = none; takes a
// reference. ERR_LIMIT: there is no room, and the body is unchanged.
int objects_keep(struct objects *o, const void *owner, bool pinned, struct buf *body, struct region *values,
                 struct err *err);

struct objects_answer {
    struct blob *blob;     // a reference of the caller's; NULL = text
    size_t offset, len;    // of what is in the blob
    struct region *values; // what follows on the device; a reference of the caller's; NULL = none
    char text[96];
};

bool objects_method(const struct call_head *head); // it is one of those below
// object.put, object.get, object.pin and object.free: their arguments are what to keep, or a reference, and one
// part may be here. Body: of the CALL, in which `call` lies.
int objects_serve(struct objects *o, const void *owner, const struct call_head *head, struct blob *body,
                  const struct record_call *call, struct objects_answer *ret, struct err *err);
// A FREE record.
void objects_release(struct objects *o, const char *json, size_t len);
