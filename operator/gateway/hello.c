// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/hello.h"

#include "common/base/json.h"
#include "common/wire/mesh.h"

enum { VERSION = 1 };

static int64_t number(const struct json *root, const char *name, int64_t fallback)
{
    int64_t v = fallback;
    return json_i64(json_get(root, name), &v) && v >= 0 ? v : fallback;
}

int hello_decode(const char *json, size_t len, struct arena *a, struct hello *ret, struct err *err)
{
    static const char *const bulk[] = {"methods", "roles", "groups", NULL}; // other functions read these
    struct json *root;
    if (json_parse(json, len, bulk, a, &root, err) < 0)
        return err_wrap(err, "HELLO");
    *ret = (struct hello){
        .role = json_str(json_get(root, "role"), a),
        .token = json_str(json_get(root, "token"), a),
        .ticket = json_str(json_get(root, "ticket"), a),
        .ns = json_str(json_get(root, "namespace"), a),
        .group = json_str(json_get(root, "group"), a),
        .replica = json_str(json_get(root, "replica"), a),
        .instance = json_str(json_get(root, "instance"), a),
        .proof = json_str(json_get(root, "proof"), a),
        .rank = number(root, "rank", -1),
        .attempt = number(root, "attempt", -1),
        .output = json_is_true(json_get(root, "output")),
    };
    int64_t version = number(root, "version", VERSION);
    if (!ret->role)
        return err_set(err, ERR_INVALID, "HELLO: \"role\" must be controller, agent, worker or replica");
    if (version != VERSION)
        return err_set(err, ERR_INVALID, "HELLO: version %lld is not supported, only version %d", (long long)version,
                       VERSION);
    return 0;
}

void hello_group(const struct group *g, uint32_t attempt, struct json_writer *w)
{
    writer_object(w, "group");
    writer_str(w, "name", g->name);
    writer_str(w, "namespace", g->ns);
    writer_str(w, "uid", g->uid);
    writer_i64(w, "worldSize", g->world);
    writer_i64(w, "attempt", attempt);
    if (g->n_meshes)
        meshes_write(w, "meshes", g->meshes, g->n_meshes);
    writer_object_end(w);
}
