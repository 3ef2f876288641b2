// SPDX-License-Identifier: Apache-2.0
// Everything of operator/api that reads what a peer wrote. The first byte says as what the rest is read:
//   p pod  n node  w WorkerGroup  g PlacementGroup  s Service  l Lease  e Event
//   c constraints of a pod  t pod template  x Status  q quantity  r RFC 3339 time
#include "common/base/rfc3339.h"
#include "common/base/str.h"
#include "operator/api/event.h"
#include "operator/api/lease.h"
#include "operator/api/object_decode.h"
#include "operator/api/object_peek.h"
#include "operator/api/placementgroup.h"
#include "operator/api/pod.h"
#include "operator/api/pod_constraints.h"
#include "operator/api/podtemplate.h"
#include "operator/api/quantity.h"
#include "operator/api/status.h"
#include "operator/api/workergroup.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void parses(const char *json, struct arena *a)
{
    struct json *root;
    struct err err = ERR_INIT;
    must(json && json_parse(json, strlen(json), NULL, a, &root, &err) == 0);
}

// Written text reads back as the same.
static void status_round_trip(const struct workergroup *wg, struct arena *a)
{
    const struct object *o;
    struct err err = ERR_INIT;
    const char *patch = workergroup_status_patch(&wg->status, a);
    parses(patch, a);
    const char *json = arena_printf(a, "{\"metadata\":{\"name\":\"x\"},\"spec\":{},%s", patch + 1);
    // A condition without reason is written as null, which reads as missing: still equal.
    must(object_decode(KIND_WORKERGROUP, json, strlen(json), &o, &err) == 0);
    must(workergroup_status_equal(&wg->status, &workergroup_of(o)->status));
    object_unref(o);
}

static void resources_in_order(const struct resources *r)
{
    for (size_t i = 0; i < r->n; i++)
        must(r->items[i].milli != 0 && (i == 0 || r->items[i - 1].id < r->items[i].id));
}

static void read_object(enum kind kind, const char *text, size_t len, struct arena *a)
{
    const struct object *o = NULL;
    struct err err = ERR_INIT;
    if (object_decode(kind, text, len, &o, &err) < 0) {
        must(err.code < 0 && err.msg[0] && !o);
        return;
    }
    must(!str_empty(o->meta.name) && o->meta.ns && o->refs == 1 && o->kind == kind);
    struct object_peek g;
    if (object_peek(text, len, &g))
        must(str_eq(g.name, o->meta.name) && (!*g.ns || str_eq(g.ns, o->meta.ns)) && str_eq(g.uid, o->meta.uid) &&
             str_eq(g.version, o->meta.resource_version));
    if (kind == KIND_POD)
        resources_in_order(&pod_of(o)->requests);
    else if (kind == KIND_WORKERGROUP)
        status_round_trip(workergroup_of(o), a);
    else if (kind == KIND_LEASE)
        parses(lease_encode(lease_of(o), a), a);
    object_unref(o);
}

static void read_template(const char *text, struct arena *a)
{
    static const char *const reserved[] = {"RANK", "CADRE_*", NULL};
    struct env_var env[] = {{"RANK", "0"}};
    struct pod_render r = {.ns = "ml", .name = "p", .hostname = "h", .env = env, .n_env = 1, .pin = "n1"};
    struct template_facts facts, again;
    struct err err = ERR_INIT;
    const char *pod;
    int inspected = template_inspect(text, reserved, a, &facts, &err);
    if (pod_render(text, &r, a, &pod, &err) < 0)
        return;
    parses(pod, a);
    if (inspected == 0) // what we add ourselves is found where it is looked for
        must(template_inspect(arena_printf(a, "{\"spec\":%s", strstr(pod, "\"spec\":") + 7), reserved, a, &again,
                              &err) < 0 ||
             again.reserved_env);
}

static void read_quantity(const char *text, struct arena *a)
{
    int64_t milli, back;
    struct err err = ERR_INIT;
    if (quantity_parse(text, &milli, &err) < 0)
        return;
    must(quantity_parse(quantity_format(RESOURCE_MEMORY, milli, a), &back, &err) == 0 && back == milli);
}

static void read_time(const char *text, size_t len)
{
    int64_t ms, back;
    char out[RFC3339_SIZE];
    if (!rfc3339_parse(text, len, &ms))
        return;
    rfc3339_format_micro(ms, out);
    // An offset may reach out of the years that can be written.
    bool in_range = ms >= INT64_C(-62135596800000) && ms < INT64_C(253402300800000);
    must(rfc3339_parse(out, strlen(out), &back) && (back == ms || !in_range));
}

static void read_constraints(const char *text, size_t len, struct arena *a)
{
    struct pod_constraints c;
    struct err err = ERR_INIT;
    if (pod_constraints_decode(text, len, a, &c, &err) == 0)
        resources_in_order(&c.requests);
}

static void read_status(const char *text, size_t len, struct arena *a)
{
    struct api_status s;
    struct err err = ERR_INIT;
    api_status_decode(text, len, a, &s);
    must(api_status_err(500, text, len, &err) == ERR_UNAVAILABLE && err.msg[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char letters[] = "pnwgslei";
    static const enum kind kinds[] = {KIND_POD,     KIND_NODE,  KIND_WORKERGROUP, KIND_PLACEMENTGROUP,
                                      KIND_SERVICE, KIND_LEASE, KIND_EVENT,       KIND_ENDPOINTSLICE};
    struct arena a = ARENA_INIT;
    if (!size)
        return 0;
    const char *text = (const char *)data + 1, *at = data[0] ? strchr(letters, data[0]) : NULL;
    size_t len = size - 1;
    if (at)
        read_object(kinds[at - letters], text, len, &a);
    else if (data[0] == 'c')
        read_constraints(text, len, &a);
    else if (data[0] == 't')
        read_template(arena_strndup(&a, text, len), &a);
    else if (data[0] == 'x')
        read_status(text, len, &a);
    else if (data[0] == 'q')
        read_quantity(arena_strndup(&a, text, len), &a);
    else if (data[0] == 'r')
        read_time(text, len);
    arena_done(&a);
    return 0;
}
