// SPDX-License-Identifier: Apache-2.0
// The Service of the simulated group, and the names that its EndpointSlice publishes.
#include "common/base/json.h"
#include "common/base/str.h"
#include "operator/api/endpointslice.h"
#include "operator/api/object_decode.h"
#include "tests/unit/operator/reconcile/gang_world.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define SLICE "sim-ipv4-0"

static const struct object *decode(struct sim_world *w, enum kind kind, const char *json)
{
    const struct object *o;
    struct err err = ERR_INIT;
    if (object_decode(kind, json, strlen(json), &o, &err) < 0)
        fail_msg("%s", err.msg);
    ((struct object *)o)->meta.resource_version = sim_log_version(&w->log);
    return o;
}

int sim_create_service(struct sim_world *w, const char *body)
{
    if (w->service)
        return ERR_EXISTS;
    w->service = decode(w, KIND_SERVICE, body);
    sim_log_add(&w->log, KIND_SERVICE, w->service->meta.name, w->service);
    return 0;
}

void sim_delete_service(struct sim_world *w)
{
    if (w->service)
        sim_log_add(&w->log, KIND_SERVICE, w->service->meta.name, NULL);
    object_unref(w->service);
    w->service = NULL;
}

static const struct json *parse(const char *json, struct arena *a)
{
    struct json *root;
    struct err err = ERR_INIT;
    if (json_parse(json, strlen(json), NULL, a, &root, &err) < 0)
        fail_msg("%s", err.msg);
    return root;
}

// The content of the slice from now on. Its metadata stays.
static void set_slice(struct sim_world *w, const char *body)
{
    struct arena a = ARENA_INIT;
    const struct json *root = parse(body, &a), *endpoints = json_get(root, "endpoints"),
                      *ports = json_get(root, "ports");
    if (!w->slice) {
        const struct json *metadata = json_get(root, "metadata");
        w->slice_metadata = arena_strndup(&w->arena, metadata->text, metadata->len);
    }
    w->slice_json = arena_printf(&w->arena, "{\"metadata\":%s,\"endpoints\":%.*s,\"ports\":%.*s}", w->slice_metadata,
                                 (int)endpoints->len, endpoints->text, (int)ports->len, ports->text);
    arena_done(&a);
    object_unref(w->slice);
    w->slice = decode(w, KIND_ENDPOINTSLICE, w->slice_json);
    assert_string_equal(w->slice->meta.name, SLICE);
    sim_log_add(&w->log, KIND_ENDPOINTSLICE, SLICE, w->slice);
}

int sim_create_slice(struct sim_world *w, const char *body)
{
    if (w->slice)
        return ERR_EXISTS;
    set_slice(w, body);
    return 0;
}

int sim_patch_slice(struct sim_world *w, const char *body)
{
    struct arena a = ARENA_INIT;
    const struct json *version = json_get(json_get(parse(body, &a), "metadata"), "resourceVersion");
    int r = !w->slice ? ERR_NOT_FOUND : !json_str_is(version, w->slice->meta.resource_version) ? ERR_CONFLICT : 0;
    arena_done(&a);
    if (r == 0)
        set_slice(w, body);
    return r;
}

void sim_delete_slice(struct sim_world *w)
{
    if (w->slice)
        sim_log_add(&w->log, KIND_ENDPOINTSLICE, SLICE, NULL);
    object_unref(w->slice);
    w->slice = NULL;
}

size_t sim_names(const struct sim_world *w)
{
    return w->service && w->slice ? endpointslice_of(w->slice)->n_endpoints : 0;
}

const char *sim_address(struct sim_world *w, int32_t index)
{
    struct arena a = ARENA_INIT;
    const char *found = NULL, *name = arena_printf(&a, "sim-%d", index);
    const struct json *slice = sim_names(w) ? parse(w->slice_json, &a) : NULL;
    JSON_FOREACH(e, json_get(slice, "endpoints")) {
        JSON_FOREACH(ip, json_get(e, "addresses")) {
            if (json_str_is(json_get(e, "hostname"), name))
                found = json_str(ip, &w->arena);
        }
    }
    arena_done(&a);
    return found;
}
