// SPDX-License-Identifier: Apache-2.0
#include "common/wire/error_body.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"

static int code_of(const char *name)
{
    static const int codes[] = {
#define X(name, number, text) -(number),
        ERR_CODES(X)
#undef X
    };
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (name && str_eq(name, err_name(codes[i])))
            return codes[i];
    return ERR_INTERNAL;
}

void error_body_read(const char *body, size_t len, struct err *ret)
{
    struct arena a = ARENA_INIT;
    struct err unreadable = ERR_INIT;
    struct json *root = NULL;
    *ret = ERR_INIT;
    if (json_parse(body, len, NULL, &a, &root, &unreadable) < 0) {
        err_set(ret, ERR_PROTO, "an error that cannot be read: %s", unreadable.msg);
    } else {
        int code = code_of(json_str(json_get(root, "code"), &a));
        const char *message = json_str(json_get(root, "message"), &a);
        err_set(ret, code, "%s", message ? message : err_text(code));
        json_i64(json_get(root, "retryAfterMs"), &ret->retry_after_ms);
    }
    arena_done(&a);
}
