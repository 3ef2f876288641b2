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

// Enough for nearly every object and its JSON tree while it is decoded. This memory is on the stack, so it costs
// nothing.
enum { DRAFT_BYTES = 4 * 1024, TREE_BYTES = 32 * 1024 };
enum { SIZES = 64, SIZE_STEP = 64, SIZE_SLACK = 32 };

// The decoders of the fields of a kind besides its metadata. The object has `size` bytes and starts zeroed. Memory that
// it keeps is from o->arena, other memory from `scratch`. Kinds that are not here have only metadata.
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

// The operator's own pods keep their labels and owner. Other foreign pods do not, to save memory.
static bool is_operator(const struct json *root)
{
    return json_str_is(json_get(json_get(json_get(root, "metadata"), "labels"), "app.kubernetes.io/part-of"), "cadre");
}

// Puts the object at the beginning of `arena`. The object owns the arena from then on, also after an error.
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

// Adds the name of the object to the error, as far as it was read.
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

// No decoder reads these members. Some are long in every list and watch, and users can make others long.
// clang-format off
static const char *const unread[] = {
    "managedFields", "images", "capacity", "nodeInfo", "addresses", "volumes", "volumeMounts", "env", "envFrom",
    "command", "args", "ports", "limits", "securityContext", "livenessProbe", "readinessProbe", "startupProbe",
    "lifecycle", "tolerations", "nodeSelector", "matchExpressions", "podAffinity", "podAntiAffinity",
    "preferredDuringSchedulingIgnoredDuringExecution", "topologySpreadConstraints", "template", "hostAliases",
    "imagePullSecrets", "ephemeralContainers", "resourceClaims", "finalizers", NULL,
};
// spec.worker has members with the same names as a container, and bundles have a nodeSelector.
static const char *const unread_in_group[] = {"managedFields", "template", NULL};
static const char *const unread_in_slice[] = {"managedFields", NULL};
// clang-format on

static const char *const *unread_of(enum kind kind)
{
    if (kind == KIND_WORKERGROUP || kind == KIND_PLACEMENTGROUP)
        return unread_in_group;
    return kind == KIND_ENDPOINTSLICE ? unread_in_slice : unread;
}

// An object should be one block with hardly an unused byte. Earlier objects of the same kind with a text of about the
// same length tell its size. They are mostly of the same group in the same phase.
static _Thread_local uint32_t sizes[KIND_COUNT][SIZES];

static bool fits(const struct object *o, size_t size)
{
    return o->arena.used <= size && size - o->arena.used <= SIZE_SLACK;
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
    int r = json_parse_stored(json, len, unread_of(kind), &scratch, &root, err);
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
