// SPDX-License-Identifier: Apache-2.0
#include "common/wire/error_body.h"

#include "common/base/json.h"
#include "common/base/mem.h"

void error_body_read(const char *body, size_t len, struct err *ret)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct err unreadable = ERR_INIT;
    struct json *root = NULL;
    *ret = ERR_INIT;
    if (json_parse(body, len, NULL, &a, &root, &unreadable) < 0) {
        err_set(ret, ERR_PROTO, "an error that cannot be read: %s", unreadable.msg);
    } else {
        const char *name = json_str(json_get(root, "code"), &a);
        int code = name ? err_find(name) : 0;
        const char *message = json_str(json_get(root, "message"), &a);
        code = code ? code : ERR_INTERNAL;
        err_set(ret, code, "%s", message ? message : err_text(code));
        json_i64(json_get(root, "retryAfterMs"), &ret->retry_after_ms);
    }
}
