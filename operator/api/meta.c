// SPDX-License-Identifier: Apache-2.0
#include "operator/api/meta.h"

#include "operator/api/json_encode.h"

#define META(member) offsetof(struct meta, member)

// clang-format off
static const struct json_table meta_table = JSON_TABLE(struct meta,
    {"name", J_STRING, META(name), .required = true},
    {"namespace", J_STRING, META(ns), .missing_str = ""},
    {"uid", J_STRING, META(uid), .read_only = true},
    {"resourceVersion", J_STRING, META(resource_version), .left_out = true},
    {"generation", J_I64, META(generation), .read_only = true},
    {"creationTimestamp", J_TIME, META(created_ms), .read_only = true},
    {"deletionTimestamp", J_TIME, META(deleted_ms), .read_only = true},
    {"deletionGracePeriodSeconds", J_I64, META(deletion_grace_s), .read_only = true});
static const struct json_table meta_map_table = JSON_TABLE(struct meta,
    {"labels", J_LABELS, META(labels), .left_out = true},
    {"annotations", J_LABELS, META(annotations), .left_out = true, .prefix = "cadre.dev/"});

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

static const struct json_table owner_table = JSON_TABLE(struct owner_item,
    {"apiVersion", J_STRING, OWNER(api_version)},
    {"kind", J_STRING, OWNER(kind)},
    {"name", J_STRING, OWNER(name)},
    {"uid", J_STRING, OWNER(uid)},
    {"controller", J_BOOL, offsetof(struct owner_item, controller)},
    {"blockOwnerDeletion", J_BOOL, offsetof(struct owner_item, blocks)});
static const struct json_table owner_list_table = JSON_TABLE(struct owner_list,
    {"ownerReferences", J_LIST, OWNERS(items), .offset_n = OWNERS(n), .table = &owner_table});
// clang-format on

static int owner_decode(const struct json *metadata, struct arena *a, struct arena *scratch, struct owner *ret,
                        struct err *err)
{
    struct owner_list list = {0};
    int r = json_decode(&owner_list_table, metadata, "metadata", &list, scratch, err);
    for (size_t i = 0; r == 0 && i < list.n; i++) {
        const struct owner *from = &list.items[i].owner;
        if (!list.items[i].controller)
            continue;
        *ret = (struct owner){
            .api_version = arena_strdup(a, from->api_version),
            .kind = arena_strdup(a, from->kind),
            .name = arena_strdup(a, from->name),
            .uid = arena_strdup(a, from->uid),
        };
        break;
    }
    return r;
}

int meta_decode(const struct json *root, bool brief, struct arena *a, struct arena *scratch, struct meta *ret,
                struct err *err)
{
    const struct json *metadata = json_get(root, "metadata");
    if (!metadata)
        return err_set(err, ERR_INVALID, "metadata: missing");
    int r = json_decode(&meta_table, metadata, "metadata", ret, a, err);
    if (r == 0 && !*ret->name)
        r = err_set(err, ERR_INVALID, "metadata.name: empty");
    if (r < 0 || brief)
        return r;
    r = json_decode(&meta_map_table, metadata, "metadata", ret, a, err);
    return r < 0 ? r : owner_decode(metadata, a, scratch, &ret->owner, err);
}

void env_write(struct json_writer *w, const char *name, const char *value)
{
    writer_print(w, NULL, "{'name':%s,'value':%s}", name, value);
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
    json_encode_members(&meta_table, m, w);
    json_encode_members(&meta_map_table, m, w);
    owner_write(w, &m->owner);
    writer_object_end(w);
}
