// SPDX-License-Identifier: Apache-2.0
#include "worker/host/told.h"

#include "worker/host/caller.h"
#include "worker/host/meeting.h"

static void take_meshes(struct meeting *m, const struct json *list, struct arena *a)
{
    struct grid *meshes;
    size_t n;
    struct err ignored = ERR_INIT; // the proxy has checked them
    if (list && grids_read(list, a, &meshes, &n, &ignored) == 0)
        meeting_meshes(m, meshes, n, false);
}

const char *told_welcome(const struct session_config *c, const struct json *welcome, struct arena *a)
{
    const struct json *group = json_get(welcome, "group");
    const char *secret = json_str(json_get(welcome, "peerSecret"), a);
    if (c->caller)
        caller_place(c->caller, json_str(json_get(group, "namespace"), a), json_str(json_get(group, "name"), a),
                     c->worker->rank);
    if (secret && c->objects)
        objects_secret(c->objects, secret);
    if (c->meeting)
        take_meshes(c->meeting, json_get(group, "meshes"), a);
    return json_str(json_get(welcome, "ticket"), a);
}

int told_place(const struct session_config *c, const char *body, size_t len, struct err *err)
{
    struct arena a = ARENA_INIT;
    struct json *root;
    int64_t rank;
    int code = json_parse(body, len, NULL, &a, &root, err);
    const char *at = code < 0 ? NULL : json_str(json_get(root, "at"), &a);
    if (at && c->meeting && json_i64(json_get(root, "rank"), &rank) && rank >= 0 && rank < UINT32_MAX)
        meeting_place(c->meeting, (uint32_t)rank, at);
    arena_done(&a);
    return code < 0 ? err_wrap(err, "PLACE") : 0;
}
