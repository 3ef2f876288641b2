// SPDX-License-Identifier: Apache-2.0
#include "operator/api/object_decode.h"

#include "common/base/mem.h"
#include "operator/api/endpointslice.h"
#include "operator/api/lease.h"
#include "operator/api/meta.h"
#include "operator/api/node.h"
#include "operator/api/placementgroup.h"
#include "operator/api/pod.h"
#include "operator/api/service.h"
#include "operator/api/workergroup.h"

#include <stddef.h>

// What nearly every object takes while it is decoded, and its tree of JSON: on the stack, which costs nothing.
enum { DRAFT_BYTES = 4 * 1024, TREE_BYTES = 32 * 1024 };
enum { SIZES = 64, SIZE_STEP = 64, SIZE_SPARE = 32 };

// Zeroed memory of `size` gets what a kind has beside its metadata. What is kept comes from o->arena, what is only
// looked at from `scratch`. Of the other kinds the metadata is all.
static const struct {
    size_t size;
    int (*decode)(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
} decoders[KIND_COUNT] = {
    [KIND_POD] = {sizeof(struct pod), pod_decode},
    [KIND_NODE] = {sizeof(struct node), node_decode},
    [KIND_WORKERGROUP] = {sizeof(struct workergroup), workergroup_decode},
    [KIND_PLACEMENTGROUP] = {sizeof(struct placementgroup), placementgroup_decode},
    [KIND_SERVICE] = {sizeof(struct service), service_decode},
    [KIND_ENDPOINTSLICE] = {sizeof(struct endpointslice), endpointslice_decode},
    [KIND_LEASE] = {sizeof(struct lease), lease_decode},
};

// Those of the operator itself. Of other pods that are not ours labels and owner are not kept: they would only cost
// memory.
static bool is_operator(const struct json *root)
{
    return json_str_is(json_get(json_get(json_get(root, "metadata"), "labels"), "app.kubernetes.io/part-of"), "cadre");
}

// The object lies at the beginning of `arena`, which is its own then, also where that fails.
static int build(enum kind kind, const struct json *root, struct arena arena, struct arena *scratch,
                 struct object **ret, struct err *err)
{
    struct object *o = arena_alloc(&arena, MAX(decoders[kind].size, sizeof(struct object)));
    *o = (struct object){.refs = 1, .kind = kind, .arena = arena};
    int r = meta_decode(root, kind == KIND_POD && pod_is_foreign(root) && !is_operator(root), &o->arena, scratch,
                        &o->meta, err);
    if (r == 0 && decoders[kind].decode)
        r = decoders[kind].decode(o, root, scratch, err);
    if (r < 0) {
        object_unref(o);
        return r;
    }
    *ret = o;
    return 0;
}

static int check_kind(enum kind kind, const struct json *root, struct err *err)
{
    const struct json *name = json_get(root, "kind");
    if (root->type != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "expected object, got %s", json_type_name(root->type));
    if (name && !json_str_is(name, kind_info(kind)->kind))
        return err_set(err, ERR_INVALID, "kind: expected %s, got %.*s", kind_info(kind)->kind, (int)MIN(name->len, 64u),
                       name->text);
    return 0;
}

// Names the object as far as it could be read.
static void wrap(enum kind kind, const struct json *root, struct arena *scratch, struct err *err)
{
    const struct json *metadata = json_get(root, "metadata");
    const char *ns = json_str(json_get(metadata, "namespace"), scratch);
    const char *name = json_str(json_get(metadata, "name"), scratch);
    if (!name)
        err_wrap(err, "%s", kind_info(kind)->kind);
    else
        err_wrap(err, "%s %.63s%s%.253s", kind_info(kind)->kind, ns ? ns : "", ns ? "/" : "", name);
}

// Looked into by no decoder; some of it is long in every list and watch, and much of it anybody can make long.
// clang-format off
static const char *const unread[] = {
    "managedFields", "images", "capacity", "nodeInfo", "addresses", "volumes", "volumeMounts", "env", "envFrom",
    "command", "args", "ports", "limits", "securityContext", "livenessProbe", "readinessProbe", "startupProbe",
    "lifecycle", "tolerations", "nodeSelector", "matchExpressions", "podAffinity", "podAntiAffinity",
    "preferredDuringSchedulingIgnoredDuringExecution", "topologySpreadConstraints", "template", NULL,
};
// Members of spec.worker have the names of those of a container, bundles have a nodeSelector.
static const char *const unread_in_group[] = {"managedFields", "template", NULL};
static const char *const unread_in_slice[] = {"managedFields", NULL};
// clang-format on

static const char *const *unread_of(enum kind kind)
{
    if (kind == KIND_WORKERGROUP || kind == KIND_PLACEMENTGROUP)
        return unread_in_group;
    return kind == KIND_ENDPOINTSLICE ? unread_in_slice : unread;
}

// What stays is to be one block, and hardly a byte more than it takes. How much that is, objects of a kind tell whose
// text is about as long: mostly those of one group in one phase.
static _Thread_local uint32_t sizes[KIND_COUNT][SIZES];

static bool fits(const struct object *o, size_t size)
{
    return o->arena.used <= size && size - o->arena.used <= SIZE_SPARE;
}

static int build_tightly(enum kind kind, const struct json *root, struct arena *scratch, struct object **ret,
                         struct err *err)
{
    _Alignas(max_align_t) unsigned char memory[DRAFT_BYTES];
    uint32_t *size = &sizes[kind][root->len / SIZE_STEP % SIZES];
    struct arena arena;
    struct object *draft;
    if (*size)
        arena_init(&arena, *size);
    else
        arena_init_in(&arena, memory, sizeof memory);
    int r = build(kind, root, arena, scratch, &draft, err);
    if (r < 0)
        return r;
    if (*size && fits(draft, *size)) {
        *ret = draft;
        return 0;
    }
    *size = (uint32_t)draft->arena.used;
    object_unref(draft);
    arena_init(&arena, *size);
    return build(kind, root, arena, scratch, ret, err);
}

int object_decode(enum kind kind, const char *json, size_t len, const struct object **ret, struct err *err)
{
    _Alignas(max_align_t) unsigned char memory[TREE_BYTES];
    struct json *root = NULL;
    struct object *o = NULL;
    struct arena scratch;
    arena_init_in(&scratch, memory, sizeof memory);
    int r = json_parse_trusted(json, len, unread_of(kind), &scratch, &root, err);
    if (r == 0)
        r = check_kind(kind, root, err);
    if (r == 0)
        r = build_tightly(kind, root, &scratch, &o, err);
    if (r < 0)
        wrap(kind, root, &scratch, err);
    else
        *ret = o;
    arena_done(&scratch);
    return r;
}
