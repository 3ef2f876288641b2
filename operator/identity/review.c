// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/review.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/str.h"
#include "operator/api/object.h"

#include <string.h>

enum { REVIEW_SAYING_MAX = 240 }; // bytes of the API server's text in a message

const char *review_token(const char *token, const char *audience, struct arena *a)
{
    const struct kind_info *kind = kind_info(KIND_TOKEN_REVIEW);
    return json_print(a, "{'apiVersion':%s,'kind':%s,'spec':{'token':%s,'audiences':[%s]}}", kind->api_version,
                      kind->kind, token, audience);
}

// Returns NULL if the answer is not an object with a status.
static const struct json *read_status(const char *answer, size_t len, struct arena *a)
{
    struct json *root = NULL;
    struct err err = ERR_INIT;
    const struct json *status = json_parse(answer, len, NULL, a, &root, &err) < 0 ? NULL : json_get(root, "status");
    return status && status->type == JSON_OBJECT ? status : NULL;
}

static bool lists(const struct json *list, const char *what)
{
    if (list && list->type == JSON_LIST)
        JSON_FOREACH(item, list)
            if (json_str_is(item, what))
                return true;
    return false;
}

static void copy_typed(struct json_writer *w, const struct json *from, const char *key, enum json_type type)
{
    const struct json *v = json_get(from, key);
    if (v && v->type == type)
        writer_copy(w, v);
}

// Only the user name has different names in the two reviews.
static const char *subject_of(const char *name, const struct json *user, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_str(&w, "user", name);
    copy_typed(&w, user, "uid", JSON_STRING);
    copy_typed(&w, user, "groups", JSON_LIST);
    copy_typed(&w, user, "extra", JSON_OBJECT);
    writer_object_end(&w);
    char *object = writer_finish(&w, a);
    return arena_strndup(a, object + 1, strlen(object) - 2);
}

const char *review_of(const struct client_user *who, const struct right *right, const char *ns, const char *name,
                      struct arena *a)
{
    const struct kind_info *kind = kind_info(KIND_SUBJECT_ACCESS_REVIEW);
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_str(&w, "namespace", ns);
    writer_str(&w, "verb", right->verb);
    writer_str(&w, "group", "cadre.dev");
    writer_str(&w, "resource", kind_info(right->kind)->plural);
    writer_str_set(&w, "subresource", right->subresource);
    writer_str_set(&w, "name", name);
    writer_object_end(&w);
    return arena_printf(a, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"spec\":{%s,\"resourceAttributes\":%s}}",
                        kind->api_version, kind->kind, who->subject, writer_finish(&w, a));
}

int review_user(const char *answer, size_t len, const char *audience, struct arena *a, struct client_user *ret,
                struct err *err)
{
    const struct json *status = read_status(answer, len, a), *user = json_get(status, "user");
    const char *name = json_str(json_get(user, "username"), a);
    if (!status)
        return err_set(err, ERR_UNAVAILABLE, "the API server's answer to a TokenReview cannot be read");
    // An API server that knows no audiences answers without them. Then the token is for that server, not for the
    // operator.
    if (!json_is_true(json_get(status, "authenticated")) || !lists(json_get(status, "audiences"), audience) ||
        str_empty(name)) {
        const char *why = json_str(json_get(status, "error"), a);
        return err_set(err, ERR_UNAUTHORIZED,
                       "the token is not valid for audience %s: make one with `kubectl create token NAME "
                       "--audience=%s`%s%.*s%s",
                       audience, audience, str_empty(why) ? "" : " (the API server says: ", REVIEW_SAYING_MAX,
                       why ? why : "", str_empty(why) ? "" : ")");
    }
    *ret = (struct client_user){name, subject_of(name, user, a)};
    return 0;
}

int review_access(const char *answer, size_t len, const char *user, const struct right *right, const char *ns,
                  const char *name, struct err *err)
{
    struct arena a = ARENA_INIT;
    const struct json *status = read_status(answer, len, &a);
    int r = 0;
    if (!status) {
        r = err_set(err, ERR_UNAVAILABLE, "the API server's answer to a SubjectAccessReview cannot be read");
    } else if (!json_is_true(json_get(status, "allowed")) || json_is_true(json_get(status, "denied"))) {
        const char *why = json_str(json_get(status, "reason"), &a);
        if (str_empty(why))
            why = json_str(json_get(status, "evaluationError"), &a);
        r = err_set(err, ERR_FORBIDDEN,
                    "user %.200s may not %s in namespace %.63s: it needs %s on %s%s%s%s%.253s (group "
                    "cadre.dev); %s%s%.*s%s",
                    user, right->what, ns, right->verb, kind_info(right->kind)->plural, right->subresource ? "/" : "",
                    right->subresource ? right->subresource : "", name ? " " : "", name ? name : "", right->advice,
                    str_empty(why) ? "" : " (the API server says: ", REVIEW_SAYING_MAX, why ? why : "",
                    str_empty(why) ? "" : ")");
    }
    arena_done(&a);
    return r;
}
