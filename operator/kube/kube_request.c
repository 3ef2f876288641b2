// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/kube_request.h"

#include "common/base/buf.h"
#include "common/base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FIELD_MANAGER "cadre-operator"

enum {
    REQUEST_MAX_PATH = 64 * 1024, // a continue token of etcd takes a few hundred bytes, a selector rarely more
    REQUEST_MAX_SEGMENT = 253,    // a DNS subdomain: no name of Kubernetes is longer
};

struct query {
    struct buf *out;
    char separator;
};

const char *verb_name(enum verb v)
{
    switch (v) {
    case VERB_CREATE:
        return "POST";
    case VERB_UPDATE:
        return "PUT";
    case VERB_PATCH_MERGE:
    case VERB_PATCH_JSON:
    case VERB_APPLY:
        return "PATCH";
    case VERB_DELETE:
        return "DELETE";
    case VERB_GET:
    case VERB_LIST:
    case VERB_WATCH:
        break;
    }
    return "GET";
}

void request_describe(const struct kube_request *r, char *ret, size_t size)
{
    bool ns = !str_empty(r->ns), name = !str_empty(r->name), sub = !str_empty(r->subresource);
    snprintf(ret, size, "%s %s%s%s%s%s%s%s", r->verb == VERB_WATCH ? "watch of" : verb_name(r->verb),
             kind_info(r->kind)->plural, ns || name ? " " : "", ns ? r->ns : "", ns && name ? "/" : "",
             name ? r->name : "", sub ? " " : "", sub ? r->subresource : "");
}

struct kube_request request_delete(const struct object *o)
{
    const struct meta *m = &o->meta;
    return (struct kube_request){.verb = VERB_DELETE,
                                 .kind = o->kind,
                                 .ns = m->ns,
                                 .name = m->name,
                                 .uid = m->uid,
                                 .grace_s = -1,
                                 .decided = true};
}

static bool verb_names_object(enum verb v)
{
    return v == VERB_GET || v == VERB_UPDATE || v == VERB_PATCH_MERGE || v == VERB_PATCH_JSON || v == VERB_APPLY ||
           v == VERB_DELETE;
}

static bool verb_has_object_body(enum verb v)
{
    return v == VERB_CREATE || v == VERB_UPDATE || v == VERB_PATCH_MERGE || v == VERB_PATCH_JSON || v == VERB_APPLY;
}

// Accepts the same names in a path as the API server, so that no name can address another object.
static bool segment_valid(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > REQUEST_MAX_SEGMENT || strcmp(s, ".") == 0 || strcmp(s, "..") == 0)
        return false;
    for (; *s; s++)
        if (*s == '/' || *s == '%' || (unsigned char)*s <= ' ' || *s == 0x7f)
            return false;
    return true;
}

static void put_escaped(struct buf *out, const char *s)
{
    static const char hex[] = "0123456789ABCDEF";
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-_.~", c))
            (void)buf_putc(out, (char)c);
        else
            (void)buf_append(out, (const char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
    }
}

static void put_segment(struct buf *out, const char *s)
{
    (void)buf_putc(out, '/');
    put_escaped(out, s);
}

static void query_add(struct query *q, const char *key, const char *value)
{
    if (str_empty(value))
        return;
    (void)buf_putc(q->out, q->separator);
    (void)buf_puts(q->out, key);
    (void)buf_putc(q->out, '=');
    put_escaped(q->out, value);
    q->separator = '&';
}

static void query_add_int(struct query *q, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    query_add(q, key, value > 0 ? text : NULL);
}

static int request_check(const struct kube_request *r, struct err *err)
{
    char what[512];
    request_describe(r, what, sizeof what);
    bool named = verb_names_object(r->verb);
    if (named && str_empty(r->name))
        return err_set(err, ERR_INVALID, "%s: the request names no object", what);
    if (named && !segment_valid(r->name))
        return err_set(err, ERR_INVALID, "%s: \"%.64s\" cannot be the name of an object", what, r->name);
    if (!str_empty(r->ns) && !kind_info(r->kind)->namespaced)
        return err_set(err, ERR_INVALID, "%s: this kind has no namespace", what);
    if (!str_empty(r->ns) && !segment_valid(r->ns))
        return err_set(err, ERR_INVALID, "%s: \"%.64s\" cannot be a namespace", what, r->ns);
    bool lists = r->verb == VERB_LIST || r->verb == VERB_WATCH;
    if (!lists && str_empty(r->ns) && kind_info(r->kind)->namespaced)
        return err_set(err, ERR_INVALID, "%s: the request names no namespace", what);
    if (!str_empty(r->subresource) && (!named || !segment_valid(r->subresource)))
        return err_set(err, ERR_INVALID, "%s: a subresource is not possible here", what);
    if (verb_has_object_body(r->verb) && str_empty(r->body))
        return err_set(err, ERR_INVALID, "%s: the request has no body", what);
    return 0;
}

static void put_path(struct buf *out, const struct kube_request *r)
{
    const struct kind_info *info = kind_info(r->kind);
    // Only the core group has no slash in its version.
    (void)buf_puts(out, strchr(info->api_version, '/') ? "/apis/" : "/api/");
    (void)buf_puts(out, info->api_version);
    if (!str_empty(r->ns)) {
        (void)buf_puts(out, "/namespaces");
        put_segment(out, r->ns);
    }
    put_segment(out, info->plural);
    if (verb_names_object(r->verb))
        put_segment(out, r->name);
    if (!str_empty(r->subresource))
        put_segment(out, r->subresource);
}

static void put_query(struct buf *out, const struct kube_request *r)
{
    struct query q = {out, '?'};
    if (r->verb == VERB_WATCH)
        query_add(&q, "watch", "true");
    if (r->verb == VERB_LIST || r->verb == VERB_WATCH) {
        query_add(&q, "allowWatchBookmarks", r->verb == VERB_WATCH && r->bookmarks ? "true" : NULL);
        query_add(&q, "labelSelector", r->label_selector);
        query_add(&q, "fieldSelector", r->field_selector);
        query_add_int(&q, "limit", r->verb == VERB_LIST ? r->limit : 0);
        query_add(&q, "continue", r->continue_token);
        // A continue token contains its resourceVersion. The API server refuses both together.
        query_add(&q, "resourceVersion", str_empty(r->continue_token) ? r->resource_version : NULL);
        query_add_int(&q, "timeoutSeconds", r->timeout_s);
    } else if (r->verb != VERB_GET) {
        query_add(&q, "fieldManager", r->verb == VERB_APPLY ? FIELD_MANAGER : NULL);
        query_add(&q, "dryRun", r->dry_run ? "All" : NULL);
    }
}

static const char *content_type(enum verb v)
{
    return v == VERB_PATCH_MERGE  ? "application/merge-patch+json"
           : v == VERB_PATCH_JSON ? "application/json-patch+json"
           : v == VERB_APPLY      ? "application/apply-patch+yaml" // JSON is YAML
                                  : "application/json";
}

static bool may_be_id(const char *s)
{
    return strspn(s, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.") == strlen(s);
}

static const char *preconditions(const struct kube_request *r, struct arena *a)
{
    const char *uid = str_empty(r->uid) ? "" : arena_printf(a, "\"uid\":\"%s\"", r->uid);
    const char *version =
        str_empty(r->resource_version) ? "" : arena_printf(a, "\"resourceVersion\":\"%s\"", r->resource_version);
    if (!*uid && !*version)
        return "";
    return arena_printf(a, ",\"preconditions\":{%s%s%s}", uid, *uid && *version ? "," : "", version);
}

// Returns NULL if the server should use its own defaults.
static int delete_options(const struct kube_request *r, struct arena *a, const char **ret, struct err *err)
{
    *ret = NULL;
    if (str_empty(r->uid) && str_empty(r->resource_version) && r->grace_s < 0)
        return 0;
    if (!str_empty(r->resource_version) && !may_be_id(r->resource_version))
        return err_set(err, ERR_INVALID, "DELETE %s %s: \"%.64s\" cannot be a resourceVersion",
                       kind_info(r->kind)->plural, r->name, r->resource_version);
    if (!str_empty(r->uid) && !may_be_id(r->uid))
        return err_set(err, ERR_INVALID, "DELETE %s %s: \"%.64s\" cannot be a UID", kind_info(r->kind)->plural, r->name,
                       r->uid);
    const char *grace = r->grace_s < 0 ? "" : arena_printf(a, ",\"gracePeriodSeconds\":%" PRId64, r->grace_s);
    *ret = arena_printf(a, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\"%s%s}", grace, preconditions(r, a));
    return 0;
}

int request_render(const struct kube_request *r, struct arena *a, struct http_message *ret, struct err *err)
{
    int e = request_check(r, err);
    if (e < 0)
        return e;
    const char *body = NULL;
    if (verb_has_object_body(r->verb))
        body = r->body;
    else if (r->verb == VERB_DELETE && (e = delete_options(r, a, &body, err)) < 0)
        return e;

    struct buf path = BUF_INIT(REQUEST_MAX_PATH);
    put_path(&path, r);
    put_query(&path, r);
    if (path.over) {
        buf_done(&path);
        return err_set(err, ERR_LIMIT, "%s %s: selector or continue token is too long", verb_name(r->verb),
                       kind_info(r->kind)->plural);
    }
    *ret = (struct http_message){
        .method = verb_name(r->verb),
        .path = arena_strndup(a, path.data, path.len),
        .content_type = body ? content_type(r->verb) : NULL,
        .body = body,
        .body_len = body ? strlen(body) : 0,
    };
    buf_done(&path);
    return 0;
}
