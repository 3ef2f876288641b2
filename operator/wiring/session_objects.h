// SPDX-License-Identifier: Apache-2.0
// The WorkerGroups and PlacementGroups that belong to sessions of this replica. While a session lasts, this renews an
// annotation of its objects again and again.
#pragma once

#include "operator/kube/kube_client.h"

struct session_objects;

// All arguments are borrowed, and must outlive it.
struct session_objects *session_objects_new(struct loop *loop, struct kube_client *client, int64_t renew_ms);
void session_objects_free(struct session_objects *s);
// Renews the object until its session ends or the object is gone. `lifetime` identifies the session. at_once: not only
// after renew_ms.
void session_objects_add(struct session_objects *s, const void *lifetime, enum kind kind, const struct meta *m,
                         bool at_once);
// The session has ended. If its objects are not wanted any more, they are deleted.
void session_objects_ended(struct session_objects *s, const void *lifetime, bool wanted);
// Deletes an object of a session that has ended. If the request is lost, the leader deletes the object, because nobody
// renews it.
void session_objects_drop(const struct session_objects *s, enum kind kind, const char *ns, const char *name,
                          const char *uid);
