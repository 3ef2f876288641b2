// SPDX-License-Identifier: Apache-2.0
// Requests of clients that need the API server: to create, delete or restart a group or a PlacementGroup, to list the
// nodes of bundles, and to say what the cluster has. The router notes the request. Its owner carries it out and
// answers, even after the session has ended.
#pragma once

#include "common/wire/record.h"
#include "operator/proxy/session_state.h"

enum group_change_kind {
    GROUP_CHANGE_NONE,
    GROUP_CHANGE_CREATE,
    GROUP_CHANGE_RENEW,
    GROUP_CHANGE_DELETE,
    GROUP_CHANGE_RESTART,
    GROUP_CHANGE_BUNDLES,
    GROUP_CHANGE_CAPACITY
};
enum {
    GROUP_CHANGES_MAX = 64,              // changes of a session at a time
    GROUP_CHANGE_ARGS_MAX = 1024 * 1024, // bytes
    GROUP_RENEWAL_ARGS_MAX = 4096,
};

struct group_change {
    enum group_change_kind kind;
    struct session *session; // NULL once it has ended
    uint32_t client_id;
    char *args; // NUL-terminated, as it arrived: nothing was checked
    // private
    struct quota *quota; // pays `cost`
    size_t cost;
    bool begun;             // the router's owner has begun it
    struct list link;       // in the router's `begun` or `group_changes`
    struct list of_session; // in the session's list until it is answered
};

enum group_change_kind group_change_kind_of(const char *method, size_t len); // GROUP_CHANGE_NONE: another method
// Notes the change. The session pays for it. If it has no room, for example because other namespaces have grown, the
// memory of all peers pays for a renewal: without it, the group would be deleted. GROUP_CHANGES_MAX and
// GROUP_RENEWAL_ARGS_MAX bound this. ERR_THROTTLED, ERR_LIMIT.
int group_change_begin(struct session *s, enum group_change_kind kind, uint32_t id, const char *args, size_t len,
                       struct err *err);
bool group_change_pending(const struct session *s, uint32_t id);
void group_changes_abandon(struct session *s); // the session ends. Changes that were begun are still carried out

// For the owner of the router: the next change to carry out; NULL = none. The owner answers it when it is done.
struct group_change *router_group_change(struct router *r);
void router_drop_group_changes(struct router *r); // at the router's end: do not answer any change afterwards
void group_change_answer(struct group_change *e, const char *json, size_t len); // frees the change
void group_change_fail(struct group_change *e, const struct err *err);          // frees the change, too
