// SPDX-License-Identifier: Apache-2.0
#include "worker/host/control_records.h"

#include "common/wire/ref.h"
#include "worker/host/code_right.h"
#include "worker/host/description.h"
#include "worker/host/nested_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PROTOCOL_VERSION = 1 };

static void take_meshes(struct rendezvous *m, const struct json *list, struct arena *a)
{
    struct mesh *meshes;
    size_t n;
    struct err ignored = ERR_INIT; // the proxy has checked them
    if (list && meshes_read(list, a, &meshes, &n, &ignored) == 0)
        rendezvous_meshes(m, meshes, n, false);
}

void control_records_hello(const struct host_session_config *c, const char *ticket, struct json_writer *w)
{
    *w = WRITER_INIT;
    writer_object(w, NULL);
    writer_str(w, "role", "worker");
    writer_i64(w, "version", PROTOCOL_VERSION);
    writer_str(w, "software", "cadre-worker " CADRE_VERSION);
    writer_str_set(w, "group", c->group);
    writer_i64(w, "rank", c->worker->rank);
    writer_i64(w, "attempt", c->attempt);
    writer_str_set(w, "ticket", ticket);
    writer_i64(w, "pid", getpid());
    if (c->objects && objects_port(c->objects))
        writer_i64(w, "objectPort", objects_port(c->objects));
    if (code_right_is_asked())
        writer_bool(w, "code", true);
    writer_str_set(w, "awaits", c->awaits);
    description_write(w, c->module, c->roles);
    writer_object_end(w);
}

const char *control_records_welcome(const struct host_session_config *c, const struct json *welcome, struct arena *a)
{
    const struct json *group = json_get(welcome, "group");
    const char *secret = json_str(json_get(welcome, "peerSecret"), a);
    if (c->client)
        nested_client_place(c->client, json_str(json_get(group, "namespace"), a), json_str(json_get(group, "name"), a),
                            c->worker->rank);
    if (secret && c->objects)
        objects_secret(c->objects, secret);
    if (c->rendezvous)
        take_meshes(c->rendezvous, json_get(group, "meshes"), a);
    return json_str(json_get(welcome, "ticket"), a);
}

size_t control_records_question(const struct rendezvous_question *q, char out[PLACE_BODY_SIZE])
{
    char id[REF_ID_SIZE];
    const char *open = q->group[0] ? ",\"group\":\"" : "", *close = q->group[0] ? "\"" : ""; // a name needs no escapes
    ref_id_write(q->id, id);
    return (size_t)snprintf(out, PLACE_BODY_SIZE,
                            "{\"rank\":%" PRIu32 "%s%s%s,\"meeting\":\"%s\",\"index\":%" PRIu32 ",\"until\":%" PRId64
                            "}",
                            q->rank, open, q->group, close, id, q->index, q->until);
}

static int take_piece(const struct host_session_config *c, const char *body, size_t len, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct archive_piece p;
    int code = archive_piece_read(body, len, &a, &p, err);
    if (code == 0 && c->archive)
        archive_fetch_deliver(c->archive, &p);
    return code;
}

static int take_place(const struct host_session_config *c, const char *body, size_t len, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *root;
    uint64_t id;
    int64_t until = 0;
    int code = json_parse(body, len, NULL, &a, &root, err);
    const char *at = code < 0 ? NULL : json_str(json_get(root, "at"), &a);
    const char *key = at ? json_str(json_get(root, "key"), &a) : NULL;
    const char *rendezvous = key ? json_str(json_get(root, "meeting"), &a) : NULL;
    if (rendezvous)
        (void)json_i64(json_get(root, "until"), &until); // a proxy of an older version does not say it
    if (rendezvous && c->rendezvous && ref_id_read(rendezvous, strlen(rendezvous), &id))
        rendezvous_place(c->rendezvous, id, until, at, key);
    return code < 0 ? err_wrap(err, "PLACE") : 0;
}

int control_records_answer(const struct host_session_config *c, const struct record *r, struct err *err)
{
    return r->h.type == RECORD_PLACE ? take_place(c, r->body, r->len, err) : take_piece(c, r->body, r->len, err);
}
