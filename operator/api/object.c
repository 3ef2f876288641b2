// SPDX-License-Identifier: Apache-2.0
#include "operator/api/object.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/endpointslice.h"
#include "operator/api/json_encode.h"
#include "operator/api/lease.h"
#include "operator/api/node.h"
#include "operator/api/placementgroup.h"
#include "operator/api/pod.h"
#include "operator/api/service.h"
#include "operator/api/tables.h"
#include "operator/api/workergroup.h"

#include <stddef.h>
#include <string.h>

// What nearly every object takes while it is decoded, and its tree of JSON: on the stack, which costs nothing.
enum { DRAFT_BYTES = 4 * 1024, TREE_BYTES = 32 * 1024 };
enum { SIZES = 64, SIZE_STEP = 64, SIZE_SPARE = 32 };

#define META(member) offsetof(struct meta, member)

static const struct json_field meta_fields[] = {
    {"name", J_STRING, META(name), .required = true},
    {"namespace", J_STRING, META(ns), .missing_str = ""},
    {"uid", J_STRING, META(uid)},
    {"resourceVersion", J_STRING, META(resource_version)},
    {"generation", J_I64, META(generation)},
    {"creationTimestamp", J_TIME, META(created_ms)},
    {"deletionTimestamp", J_TIME, META(deleted_ms)},
    {"deletionGracePeriodSeconds", J_I64, META(deletion_grace_s)},
};
static const struct json_table meta_table = JSON_TABLE(struct meta, meta_fields);
static const struct json_field meta_map_fields[] = {
    {"labels", J_LABELS, META(labels)},
    {"annotations", J_LABELS, META(annotations), .prefix = "cadre.dev/"},
};
static const struct json_table meta_map_table = JSON_TABLE(struct meta, meta_map_fields);

struct owner_item {
    struct owner owner;
    bool controller, blocks;
};
struct owner_list {
    struct owner_item *items;
    size_t n;
};
#define OWNER(member) offsetof(struct owner, member)
#define OWNERS(member) offsetof(struct owner_list, member)

static const struct json_field owner_fields[] = {
    {"apiVersion", J_STRING, OWNER(api_version)},
    {"kind", J_STRING, OWNER(kind)},
    {"name", J_STRING, OWNER(name)},
    {"uid", J_STRING, OWNER(uid)},
    {"controller", J_BOOL, offsetof(struct owner_item, controller)},
    {"blockOwnerDeletion", J_BOOL, offsetof(struct owner_item, blocks)},
};
static const struct json_table owner_table = JSON_TABLE(struct owner_item, owner_fields);
static const struct json_field owner_list_fields[] = {
    {"ownerReferences", J_LIST, OWNERS(items), .offset_n = OWNERS(n), .table = &owner_table},
};
static const struct json_table owner_list_table = JSON_TABLE(struct owner_list, owner_list_fields);

typedef int (*decode_fn)(struct object *o, const struct json *root, struct arena *scratch, struct err *err);

static const struct kind_ops {
    struct kind_info info;
    size_t size;
    decode_fn decode; // NULL: the metadata is all
} kinds[KIND_COUNT] = {
    [KIND_POD] = {{"Pod", "v1", "pods", true}, sizeof(struct pod), pod_decode},
    [KIND_NODE] = {{"Node", "v1", "nodes", false}, sizeof(struct node), node_decode},
    [KIND_WORKERGROUP] = {{"WorkerGroup", "cadre.dev/v1alpha1", "workergroups", true},
                          sizeof(struct workergroup),
                          workergroup_decode},
    [KIND_PLACEMENTGROUP] = {{"PlacementGroup", "cadre.dev/v1alpha1", "placementgroups", true},
                             sizeof(struct placementgroup),
                             placementgroup_decode},
    [KIND_SERVICE] = {{"Service", "v1", "services", true}, sizeof(struct service), service_decode},
    [KIND_ENDPOINTSLICE] = {{"EndpointSlice", "discovery.k8s.io/v1", "endpointslices", true},
                            sizeof(struct endpointslice),
                            endpointslice_decode},
    [KIND_LEASE] = {{"Lease", "coordination.k8s.io/v1", "leases", true}, sizeof(struct lease), lease_decode},
    [KIND_EVENT] = {{"Event", "events.k8s.io/v1", "events", true}, sizeof(struct object), NULL},
    [KIND_SECRET] = {{"Secret", "v1", "secrets", true}, sizeof(struct object), NULL},
    [KIND_TOKEN_REVIEW] = {{"TokenReview", "authentication.k8s.io/v1", "tokenreviews", false},
                           sizeof(struct object),
                           NULL},
    [KIND_SUBJECT_ACCESS_REVIEW] = {{"SubjectAccessReview", "authorization.k8s.io/v1", "subjectaccessreviews", false},
                                    sizeof(struct object),
                                    NULL},
    [KIND_SELF_SUBJECT_ACCESS_REVIEW] = {{"SelfSubjectAccessReview", "authorization.k8s.io/v1",
                                          "selfsubjectaccessreviews", false},
                                         sizeof(struct object),
                                         NULL},
};

const struct kind_info *kind_info(enum kind kind)
{
    return &kinds[kind].info;
}

const char *labels_get(const struct labels *l, const char *key)
{
    for (size_t lo = 0, hi = l->n; lo < hi;) {
        size_t mid = lo + (hi - lo) / 2;
        int r = strcmp(key, l->items[mid].key);
        if (r == 0)
            return l->items[mid].value;
        if (r < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const struct object *object_ref(const struct object *o)
{
    ((struct object *)o)->refs++;
    return o;
}

void object_unref(const struct object *o)
{
    if (!o || --((struct object *)o)->refs > 0)
        return;
    struct arena arena = o->arena; // the object itself lies in it
    arena_done(&arena);
}

static int owner_decode(struct object *o, const struct json *metadata, struct arena *scratch, struct err *err)
{
    struct owner_list list = {0};
    int r = json_decode(&owner_list_table, metadata, "metadata", &list, scratch, err);
    for (size_t i = 0; r == 0 && i < list.n; i++) {
        const struct owner *from = &list.items[i].owner;
        if (!list.items[i].controller)
            continue;
        o->meta.owner = (struct owner){
            .api_version = arena_strdup(&o->arena, from->api_version),
            .kind = arena_strdup(&o->arena, from->kind),
            .name = arena_strdup(&o->arena, from->name),
            .uid = arena_strdup(&o->arena, from->uid),
        };
        break;
    }
    return r;
}

// Those of the operator itself.
static bool is_operator(const struct json *metadata)
{
    return json_str_is(json_get(json_get(metadata, "labels"), "app.kubernetes.io/part-of"), "cadre");
}

// A pod that is not ours is kept without labels and owner: they would only cost memory.
static int meta_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err)
{
    const struct json *metadata = json_get(root, "metadata");
    bool brief = o->kind == KIND_POD && pod_is_foreign(root) && !is_operator(metadata);
    if (!metadata)
        return err_set(err, ERR_INVALID, "metadata: missing");
    int r = json_decode(&meta_table, metadata, "metadata", &o->meta, &o->arena, err);
    if (r == 0 && !*o->meta.name)
        r = err_set(err, ERR_INVALID, "metadata.name: empty");
    if (r < 0 || brief)
        return r;
    r = json_decode(&meta_map_table, metadata, "metadata", &o->meta, &o->arena, err);
    return r < 0 ? r : owner_decode(o, metadata, scratch, err);
}

// The object lies at the beginning of `arena`, which is its own then, also where that fails.
static int build(enum kind kind, const struct json *root, struct arena arena, struct arena *scratch,
                 struct object **ret, struct err *err)
{
    struct object *o = arena_alloc(&arena, kinds[kind].size);
    *o = (struct object){.refs = 1, .kind = kind, .arena = arena};
    int r = meta_decode(o, root, scratch, err);
    if (r == 0 && kinds[kind].decode)
        r = kinds[kind].decode(o, root, scratch, err);
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
    if (name && !json_str_is(name, kinds[kind].info.kind))
        return err_set(err, ERR_INVALID, "kind: expected %s, got %.*s", kinds[kind].info.kind, (int)MIN(name->len, 64u),
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
        err_wrap(err, "%s", kinds[kind].info.kind);
    else
        err_wrap(err, "%s %.63s%s%.253s", kinds[kind].info.kind, ns ? ns : "", ns ? "/" : "", name);
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

int resource_version_cmp(const char *a, const char *b)
{
    if (str_eq(a, b))
        return 0;
    size_t n = a ? strlen(a) : 0, m = b ? strlen(b) : 0;
    if (n != m)
        return n < m ? -1 : 1;
    return n ? strcmp(a, b) : 0;
}

void labels_write(struct json_writer *w, const char *key, const struct labels *l)
{
    writer_object(w, key);
    for (size_t i = 0; i < l->n; i++)
        writer_str(w, l->items[i].key, l->items[i].value);
    writer_object_end(w);
}

bool owner_is(const struct owner *o, enum kind kind)
{
    const struct kind_info *k = kind_info(kind);
    return str_eq(o->kind, k->kind) && o->api_version &&
           strncmp(o->api_version, k->api_version, strcspn(k->api_version, "/") + 1) == 0;
}

void owner_write(struct json_writer *w, const struct owner *o)
{
    struct owner_item item = {.owner = *o, .controller = true, .blocks = true};
    if (o->uid)
        json_encode_members(&owner_list_table, &(struct owner_list){&item, 1}, w);
}

void kind_write(struct json_writer *w, enum kind kind)
{
    const struct kind_info *info = kind_info(kind);
    writer_str(w, "apiVersion", info->api_version);
    writer_str(w, "kind", info->kind);
}

void head_write(struct json_writer *w, enum kind kind, const struct meta *m)
{
    kind_write(w, kind);
    writer_object(w, "metadata");
    writer_str(w, "name", m->name);
    writer_str(w, "namespace", m->ns);
    labels_write(w, "labels", &m->labels);
    owner_write(w, &m->owner);
    writer_object_end(w);
}
