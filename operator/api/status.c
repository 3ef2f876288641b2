// SPDX-License-Identifier: Apache-2.0
#include "operator/api/status.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/json_table.h"

#define STATUS(member) offsetof(struct api_status, member)

// clang-format off
static const struct json_table details_table = JSON_TABLE(struct api_status,
    {"retryAfterSeconds", J_I32, STATUS(retry_after_s)});
static const struct json_table status_table = JSON_TABLE(struct api_status,
    {"code", J_I32, STATUS(code)},
    {"reason", J_STRING, STATUS(reason)},
    {"message", J_STRING, STATUS(message)},
    {"details", J_OBJECT, .table = &details_table});
// clang-format on

// Returns the beginning of a text that is not a Status, on one line and without control characters.
static const char *first_bytes(const char *text, size_t len, struct arena *a)
{
    size_t n = MIN(len, (size_t)200);
    char *s = arena_alloc(a, n + 1);
    for (size_t i = 0; i < n; i++) {
        bool control = (unsigned char)text[i] < 0x20 || text[i] == 0x7f;
        s[i] = ' ';
        if (!control)
            s[i] = text[i];
    }
    return s;
}

void api_status_decode(const char *json, size_t len, struct arena *a, struct api_status *ret)
{
    struct err ignored = ERR_INIT;
    struct json *root;
    *ret = (struct api_status){0};
    if (json_parse(json, len, NULL, a, &root, &ignored) < 0 || !json_str_is(json_get(root, "kind"), "Status") ||
        json_decode(&status_table, root, "", ret, a, &ignored) < 0)
        *ret = (struct api_status){.message = first_bytes(json, len, a)};
}

static int code_of(int http_status, const struct api_status *s)
{
    switch (http_status) {
    case 401:
        return ERR_UNAUTHORIZED;
    case 403:
        return ERR_FORBIDDEN;
    case 404:
        return ERR_NOT_FOUND;
    case 408:
    case 504:
        return ERR_TIMEOUT;
    case 409:
        return str_eq(s->reason, "AlreadyExists") ? ERR_EXISTS : ERR_CONFLICT;
    case 410:
        return ERR_GONE;
    case 429:
        return ERR_THROTTLED;
    default:
        return http_status >= 500 ? ERR_UNAVAILABLE : ERR_INVALID;
    }
}

int api_status_err(int http_status, const char *json, size_t len, struct err *err)
{
    if (http_status >= 200 && http_status < 300)
        return 0;
    struct arena a = ARENA_INIT;
    struct api_status s;
    api_status_decode(json, len, &a, &s);
    int code = code_of(http_status, &s);
    if (str_empty(s.message))
        err_set(err, code, "the API server answered HTTP %d without a message", http_status);
    else
        err_set(err, code, "%s", s.message);
    err->http_status = http_status;
    err->retry_after_ms = s.retry_after_s > 0 ? (int64_t)s.retry_after_s * 1000 : 0;
    arena_done(&a);
    return code;
}
