// SPDX-License-Identifier: Apache-2.0
// One worker process that is connected, and the methods that it declared in its HELLO:
//
//   {"methods": [{"name": "add", "dispatch": "ONE_TO_ALL", "execute": "ALL"},
//                {"name": "foo", "dispatch": "SPLIT", "execute": "ALL", "split": ..., "collect": ...},
//                {"name": "ask", ..., "concurrency": {"group": "io", "limit": 8}}, ...],
//    "meshes": [...],                                                   (mesh.h; may be missing)
//    "code": true,                          (it wants to know which clients may send code; may be missing)
//    "awaits": "2f0c...",              (the archive of code without which it cannot begin, its SHA-256; may be missing)
//    "objectPort": 41234}                                               (may be missing)
//
// or, with several classes in the process, "roles": [{"name": "actor", "class": "Actor", "methods": [...]}, ...]
// instead of "methods".
//
// Its identity (group, attempt, rank, pod, node) comes from its token and ticket, not from its HELLO.
#pragma once

#include "common/base/arena.h"
#include "common/wire/dispatch.h"
#include "operator/proxy/peer.h"

#include <stdint.h>

enum { MEMBER_METHODS_MAX = 1024, MEMBER_ROLES_MAX = 16, MEMBER_LANES_MAX = 17, MEMBER_LANE_NONE = MEMBER_LANES_MAX };

struct member_method {
    const char *name;
    uint8_t dispatch, execute;        // enum record_dispatch and record_execute, never DEFAULT
    uint8_t lane;                     // of its concurrency group; 0 = it has none
    bool idempotent;                  // it may run again for the same call
    const char *split, *collect;      // the rule as the worker registered it; NULL = none
    const struct dispatch_rule *rule; // NULL if both of them are
};

struct member_role {
    const char *name, *class;      // name is NULL: the group has no roles. class is NULL: the worker did not say
    struct member_method *methods; // sorted by name
    size_t n_methods;
};

struct member_lane {          // threads of the process, and the calls that they have
    const char *role, *group; // the concurrency group; NULL: the threads of all methods without one
    uint32_t limit;           // most calls that they run at a time
    uint32_t n_pending;
};

struct member_identity { // borrowed for the call only
    const char *group_uid;
    uint32_t attempt, rank;
    const char *pod, *node;
    const char *welcome; // body of a WELCOME that is sent before any call; NULL = the owner sends it
    const char *address; // the address from which it connected; NULL or "" = this machine
    const char *secret;  // the secret of its attempt; NULL = none: nobody can fetch objects from it
};

struct group;

struct member_transfer { // weights that it receives now; 0 bytes = none
    int64_t done, bytes;
};

struct member {
    struct peer peer;
    struct group *group;  // NULL once the group is gone
    struct list of_group; // in the group's list of members
    struct list recount;  // in the ranking's list of members whose number of calls has changed (ranking.h)
    size_t index;         // in the ranking
    bool registered;      // the group has it as the process of its rank (proxy_group.h)
    uint32_t attempt, rank;
    const char *pod, *node;       // in the arena
    const char *address, *secret; // in the arena
    uint16_t object_port;         // other workers fetch objects there; 0 = nowhere
    bool takes_code;              // it wants to know which clients may send code
    const char *awaits;           // NULL = nothing; else it belongs to the bootstrap group (proxy_group.h)
    struct member_role *roles;    // at least one
    size_t n_roles;
    // The last one is for calls that need no thread of the class; it has no limit.
    struct member_lane lanes[MEMBER_LANES_MAX + 1];
    size_t n_lanes;      // at least one
    struct mesh *meshes; // as it published them
    size_t n_meshes;
    struct member_transfer transfer;
    struct list pending; // of the calls that it has not answered (call.h): struct call_rank
    size_t n_pending;
    // After its connection has ended, calls wait for its exit code until leave_at:
    struct list leaving;
    int64_t leave_at;
    const char *cut; // why the proxy cut its connection; NULL = it did not
    // From when it can answer no more, until all of its calls have got their errors:
    struct list failing; // in its namespace's list
    const char *end;     // how it ended, for messages; NULL = it has not
    const char *words;   // its last line, "" = none
    bool exited;
    int exit_code;
    bool gone; // its connection has also ended
    // private
    struct arena arena;
};

// ERR_INVALID: the message says what is wrong with the HELLO.
int member_new(const struct member_identity *id, const char *hello, size_t len, struct member **ret, struct err *err);
void member_free(struct member *m); // nothing may be pending
// NULL: the member has no such role. `name` is NULL or "": the role without a name.
const struct member_role *member_role(const struct member *m, const char *name);
const struct member_method *member_method(const struct member_role *r, const char *name); // NULL = the role has none
// The method of that role; NULL = the member has no such role or method.
const struct member_method *member_method_of(const struct member *m, const char *role, const char *method);
// The lane with that number, or MEMBER_LANE_NONE. If this process declared fewer lanes than others of the same class:
// the first one.
struct member_lane *member_lane(struct member *m, uint8_t lane);
// The address at which other workers reach it: "10.0.0.7:41234". False: there is none.
bool member_at(const struct member *m, char *out, size_t size);
