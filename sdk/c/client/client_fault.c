// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/client/client_fault.h"

#include "common/base/json.h"
#include "common/base/mem.h"

#include <stdarg.h>
#include <stdio.h>

// The interface has no name for ERR_NOMEM, which only workers send.
static cadre_client_code code_of(const char *name)
{
    int code = err_find(name);
    return code && code != ERR_NOMEM ? (cadre_client_code)-code : CADRE_CLIENT_FAILED;
}

const char *cadre_client_code_name(cadre_client_code code)
{
    return code == CADRE_CLIENT_FAILED ? "FAILED" : err_name(-(int)code);
}

static void fault_init(cadre_client_error *f, cadre_client_code code, const char *name)
{
    memset(f, 0, sizeof *f);
    f->code = code;
    f->rank = f->exit_code = -1;
    snprintf(f->name, sizeof f->name, "%s", name);
}

void fault_from(cadre_client_error *ret, const struct err *err, bool may_have_run)
{
    fault_init(ret, (cadre_client_code)-err->code, err_name(err->code));
    ret->may_have_run = may_have_run;
    ret->retry_after_ms = err->retry_after_ms;
    snprintf(ret->message, sizeof ret->message, "%s", err->msg[0] ? err->msg : err_text(err->code));
}

// docs/calls.md has the table.
static bool may_have_run(const cadre_client_error *f)
{
    switch (f->code) {
    case CADRE_CLIENT_INVALID:
    case CADRE_CLIENT_NOT_FOUND:
    case CADRE_CLIENT_UNAVAILABLE:
        return f->rank >= 0; // the proxy's refusal counts for all ranks, a rank's for itself
    case CADRE_CLIENT_FORBIDDEN:
    case CADRE_CLIENT_UNAUTHORIZED:
    case CADRE_CLIENT_EXISTS:
    case CADRE_CLIENT_CONFLICT:
    case CADRE_CLIENT_THROTTLED:
        return false;
    default:
        return true;
    }
}

static void get_text(const struct json *object, const char *member, struct arena *a, char *out, size_t size)
{
    const char *s = json_str(json_get(object, member), a);
    if (s)
        snprintf(out, size, "%s", s);
}

static void get_number(const struct json *object, const char *member, int32_t *ret)
{
    int64_t v;
    if (json_i64(json_get(object, member), &v) && v >= 0 && v <= INT32_MAX)
        *ret = (int32_t)v;
}

void fault_decode(cadre_client_error *ret, const char *body, size_t len)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *root = NULL;
    char *name = NULL;
    if (json_parse_values(body, len, 1, &a, &root, &err) == 0)
        name = json_str(json_get(root, "code"), &a);
    if (name) {
        fault_init(ret, code_of(name), name);
        get_text(root, "message", &a, ret->message, sizeof ret->message);
        get_text(root, "pod", &a, ret->pod, sizeof ret->pod);
        get_text(root, "node", &a, ret->node, sizeof ret->node);
        get_number(root, "rank", &ret->rank);
        get_number(root, "exitCode", &ret->exit_code);
        json_i64(json_get(root, "retryAfterMs"), &ret->retry_after_ms);
        ret->retry_after_ms = MAX(ret->retry_after_ms, (int64_t)0);
    } else {
        fault_init(ret, CADRE_CLIENT_INTERNAL, "INTERNAL");
        snprintf(ret->message, sizeof ret->message, "the proxy sent an error that cannot be read (%zu bytes)", len);
    }
    const struct json *ran = json_get(root, "ran");
    ret->idempotent = json_is_true(json_get(root, "idempotent"));
    bool unsent = ran && ran->type == JSON_BOOL && ran->text[0] == 'f';
    ret->may_have_run = !unsent && may_have_run(ret);
}

cadre_client_code fault_return(cadre_client_error *error, const struct err *err)
{
    if (error)
        fault_from(error, err, false);
    return (cadre_client_code)-err->code;
}

int fault_err(const cadre_client_error *fault, struct err *err)
{
    int code = fault->code == CADRE_CLIENT_FAILED ? ERR_INTERNAL : -(int)fault->code;
    err->retry_after_ms = fault->retry_after_ms;
    return err_set(err, code, "%s", fault->message[0] ? fault->message : fault->name);
}

int fault_refuse_now(struct err *err, const char *format, ...)
{
    char text[sizeof err->msg];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    err_set(err, ERR_LIMIT, "%s", text);
    err->retry_after_ms = 1;
    return ERR_LIMIT;
}
