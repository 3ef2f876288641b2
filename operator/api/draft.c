// SPDX-License-Identifier: Apache-2.0
#include "operator/api/draft.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/meta.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OURS "cadre.dev/"

static int check_members(const struct json *v, const char *what, const char *const *known, struct err *err)
{
    JSON_FOREACH(m, v) {
        size_t i = 0;
        while (known[i] && !json_key_is(m, known[i]))
            i++;
        if (!known[i])
            return err_set(err, ERR_INVALID, "group.create: %s has no \"%.*s\" here", what, (int)MIN(m->key_len, 100u),
                           m->key);
    }
    return 0;
}

static int check_kind(const struct json *group, enum kind is, struct err *err)
{
    const struct kind_info *info = kind_info(is);
    const struct json *kind = json_get(group, "kind"), *version = json_get(group, "apiVersion");
    if ((kind && !json_str_is(kind, info->kind)) || (version && !json_str_is(version, info->api_version)))
        return err_set(err, ERR_INVALID, "the object must be of kind %s of %s", info->kind, info->api_version);
    return 0;
}

static int check_metadata(const struct json *metadata, const char *ns, struct err *err)
{
    static const char *const known[] = {"name", "namespace", "labels", "annotations", NULL};
    const struct json *theirs = json_get(metadata, "namespace");
    if (theirs && !json_str_is(theirs, ns))
        return err_set(err, ERR_FORBIDDEN,
                       "this connection is for the groups of namespace %s; open another one for %.*s", ns,
                       (int)MIN(theirs->len, 100u), theirs->text);
    JSON_FOREACH(m, json_get(metadata, "annotations"))
        if (m->key_len >= strlen(OURS) && memcmp(m->key, OURS, strlen(OURS)) == 0)
            return err_set(err, ERR_INVALID, "group.create: annotations of " OURS " are the operator's own");
    return check_members(metadata, "metadata", known, err);
}

static int read_lifetime(const struct json *v, bool *ret_detached, struct err *err)
{
    *ret_detached = json_str_is(v, "Detached");
    return !v || *ret_detached || json_str_is(v, "Session")
               ? 0
               : err_set(err, ERR_INVALID,
                         "group.create: \"lifetime\" is Session (as long as this connection) or "
                         "Detached, not %.*s",
                         (int)MIN(v->len, 100u), v->text);
}

static void write_annotations(const struct json *theirs, const struct draft *d, const char *user, int64_t now_ms,
                              struct json_writer *w)
{
    char now[24];
    writer_object(w, "annotations");
    JSON_FOREACH(m, theirs)
        writer_copy(w, m);
    writer_str(w, ANNOTATION_CREATED_BY, user);
    writer_str(w, ANNOTATION_MANIFEST_HASH, d->hash);
    snprintf(now, sizeof now, "%" PRId64, now_ms);
    if (!d->detached)
        writer_str(w, ANNOTATION_SESSION_RENEWED, now);
    writer_object_end(w);
}

static const char *write_manifest(const struct json *group, const struct draft *d, const char *user, int64_t now_ms,
                                  struct arena *a)
{
    const struct json *metadata = json_get(group, "metadata"), *spec = json_get(group, "spec");
    const struct json *labels = json_get(metadata, "labels");
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    kind_write(&w, d->kind);
    writer_object(&w, "metadata");
    writer_str(&w, "name", d->name);
    if (labels)
        writer_copy(&w, labels);
    write_annotations(json_get(metadata, "annotations"), d, user, now_ms, &w);
    writer_object_end(&w);
    writer_copy(&w, spec);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

// Returns the one of the two members that is there. Returns NULL if both or none are there.
static const struct json *of_kind(const struct json *root, enum kind *ret)
{
    const struct json *group = json_get(root, "workerGroup"), *placement = json_get(root, "placementGroup");
    *ret = placement ? KIND_PLACEMENTGROUP : KIND_WORKERGROUP;
    if (!group == !placement)
        return NULL;
    return group ? group : placement;
}

int draft_read(const char *args, const char *ns, const char *user, int64_t now_ms, struct arena *a, struct draft *ret,
               struct err *err)
{
    static const char *const known[] = {"workerGroup", "placementGroup", "lifetime", NULL};
    static const char *const of_group[] = {"apiVersion", "kind", "metadata", "spec", "status", NULL};
    struct json *root;
    *ret = (struct draft){0};
    int r = json_parse(args, strlen(args), NULL, a, &root, err);
    if (r < 0)
        return err_wrap(err, "group.create");
    const struct json *group = of_kind(root, &ret->kind), *metadata = json_get(group, "metadata");
    if (root->type != JSON_OBJECT || !group || group->type != JSON_OBJECT)
        return err_set(err, ERR_INVALID,
                       "group.create needs {\"workerGroup\": {a manifest of kind WorkerGroup}}, or "
                       "{\"placementGroup\": {a manifest of kind PlacementGroup}}");
    r = check_members(root, "what it is given", known, err);
    if (r == 0)
        r = check_members(group, kind_info(ret->kind)->kind, of_group, err);
    if (r == 0)
        r = check_kind(group, ret->kind, err);
    if (r == 0)
        r = check_metadata(metadata, ns, err);
    if (r == 0)
        r = read_lifetime(json_get(root, "lifetime"), &ret->detached, err);
    if (r < 0)
        return r;
    ret->name = json_str(json_get(metadata, "name"), a);
    if (str_empty(ret->name) || !json_get(group, "spec"))
        return err_set(err, ERR_INVALID, "group.create: a %s needs metadata.name and spec", kind_info(ret->kind)->kind);
    ret->hash = arena_printf(a, "%016" PRIx64, str_hash(args, strlen(args)));
    ret->manifest = write_manifest(group, ret, user, now_ms, a);
    return 0;
}

int draft_check_renewal(const struct renewed *o, const char *wanted, bool has_session, struct err *err)
{
    if (!str_eq(o->uid, wanted))
        return err_set(err, ERR_NOT_FOUND,
                       o->late ? "none with this UID is here: it has been deleted, or this replica does not know it "
                                 "yet; try again for 90 s"
                               : "it has been deleted");
    if (o->deleting)
        return err_set(err, ERR_NOT_FOUND, "it is being deleted");
    if (!o->bound)
        return err_set(err, ERR_INVALID, "it is detached, so it needs no session");
    return has_session ? 0 : err_set(err, ERR_INVALID, "a single request has no session: open a websocket");
}

int draft_check_session(const struct draft *d, bool has_session, struct err *err)
{
    return d->detached || has_session
               ? 0
               : err_set(err, ERR_INVALID,
                         "a single request has no session that could own the group: set \"lifetime\" to \"Detached\", "
                         "or open a websocket");
}

const char *draft_answer(const char *ns, const char *name, const char *uid, bool detached, struct arena *a)
{
    return json_print(a, "{'namespace':%s,'name':%s,'uid':%s,'lifetime':%s}", ns, name, uid,
                      detached ? "Detached" : "Session");
}

// Returns false if `root` has no name, or other members than this and `n_others`.
static bool get_name(const struct json *root, size_t n_others, struct arena *a, enum kind *ret_kind,
                     const char **ret_name)
{
    const struct json *placement = json_get(root, "placementGroup");
    *ret_kind = placement ? KIND_PLACEMENTGROUP : KIND_WORKERGROUP;
    *ret_name = json_str(placement ? placement : json_get(root, "group"), a);
    return !str_empty(*ret_name) && json_count(root) == 1 + n_others;
}

int draft_read_renew(const char *args, struct arena *a, enum kind *ret_kind, const char **ret_name,
                     const char **ret_uid, struct err *err)
{
    struct json *root = NULL;
    if (json_parse(args, strlen(args), NULL, a, &root, err) < 0)
        return err_wrap(err, "group.renew");
    *ret_uid = json_str(json_get(root, "uid"), a);
    return get_name(root, 1, a, ret_kind, ret_name) && !str_empty(*ret_uid)
               ? 0
               : err_set(err, ERR_INVALID,
                         "group.renew needs {\"group\": the name of a WorkerGroup, \"uid\": its UID}, or the same with "
                         "\"placementGroup\"");
}

int draft_read_name(const char *args, const char *method, struct arena *a, enum kind *ret_kind, const char **ret_name,
                    struct err *err)
{
    struct json *root = NULL;
    int r = json_parse(args, strlen(args), NULL, a, &root, err);
    if (r < 0)
        return err_wrap(err, "%s", method);
    if (!get_name(root, 0, a, ret_kind, ret_name))
        return err_set(err, ERR_INVALID,
                       "%s needs {\"group\": the name of a WorkerGroup}, or {\"placementGroup\": the name of a "
                       "PlacementGroup}",
                       method);
    return 0;
}

int draft_read_bundles(const char *args, struct arena *a, const char **ret_name, struct err *err)
{
    enum kind kind = KIND_PLACEMENTGROUP;
    int r = draft_read_name(args, "group.bundles", a, &kind, ret_name, err);
    return r == 0 && kind != KIND_PLACEMENTGROUP
               ? err_set(err, ERR_INVALID, "group.bundles needs {\"placementGroup\": the name of a PlacementGroup}")
               : r;
}

int draft_read_restart(const char *args, struct arena *a, const char **ret_name, const char **ret_worker,
                       const char **ret_manifest, struct err *err)
{
    struct json *root = NULL;
    enum kind kind;
    int r = json_parse(args, strlen(args), NULL, a, &root, err);
    if (r < 0)
        return err_wrap(err, "group.restart");
    const struct json *group = json_get(root, "workerGroup"), *worker = json_get(json_get(group, "spec"), "worker");
    *ret_worker = *ret_manifest = NULL;
    if (!group) {
        r = draft_read_name(args, "group.restart", a, &kind, ret_name, err);
        return r == 0 && kind != KIND_WORKERGROUP
                   ? err_set(err, ERR_INVALID, "group.restart needs {\"group\": the name of a WorkerGroup}")
                   : r;
    }
    *ret_name = json_str(json_get(json_get(group, "metadata"), "name"), a);
    if (json_count(root) != 1 || str_empty(*ret_name) || !worker || worker->type != JSON_OBJECT)
        return err_set(err, ERR_INVALID,
                       "group.restart needs {\"workerGroup\": {a manifest}} with metadata.name and spec.worker, or "
                       "{\"group\": the name of a WorkerGroup}");
    *ret_worker = arena_strndup(a, worker->text, worker->len);
    const struct json *spec = json_get(group, "spec");
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    kind_write(&w, KIND_WORKERGROUP);
    writer_print(&w, "metadata", "{'name':%s}", *ret_name);
    writer_copy(&w, spec);
    writer_object_end(&w);
    *ret_manifest = writer_finish(&w, a);
    return check_kind(group, KIND_WORKERGROUP, err);
}

const char *bundle_places_write(const struct bundle_places *p, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_bool(&w, "ready", p->ready);
    if (!p->ready && p->message)
        writer_str(&w, "message", p->message);
    writer_list(&w, "nodes");
    for (int32_t i = 0; i < p->n; i++)
        writer_str(&w, NULL, p->nodes ? p->nodes[i] : NULL);
    writer_list_end(&w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

const char *capacity_write(size_t nodes, const struct resources *all, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_i64(&w, "nodes", (int64_t)nodes);
    writer_object(&w, "resources");
    for (size_t i = 0; i < all->n; i++)
        writer_i64(&w, resource_name(all->items[i].id), all->items[i].milli / 1000);
    writer_object_end(&w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}
