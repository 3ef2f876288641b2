// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/call_failure.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define X(name, number, text) #name,
static const char *const kinds[] = {ERR_CODES(X) "FAILED", "NO_DEVICE", "OTHER"};
#undef X
_Static_assert(ARRAY_LEN(kinds) == CALL_FAILURE_KINDS, "a code is new");

#define BODY_MAX ((size_t)64 << 10) // of an ERROR. A code, a message and a cause need less

void call_failure_set(struct call_failure *f, int code, const char *fmt, ...)
{
    f->rank = -1;
    f->pod = f->node = NULL;
    f->exited = f->unran = false;
    f->cause = NULL;
    f->late.n = 0;
    f->retry_after_ms = code == ERR_THROTTLED ? CALL_FAILURE_RETRY_MS : 0;
    snprintf(f->code, sizeof f->code, "%s", err_name(code));
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->message, sizeof f->message, fmt, ap);
    va_end(ap);
}

void call_failure_from(struct call_failure *f, const struct err *err)
{
    call_failure_set(f, err->code, "%s", err->msg[0] ? err->msg : err_text(err->code));
    if (err->retry_after_ms)
        f->retry_after_ms = err->retry_after_ms;
}

void call_failure_encode(const struct call_failure *f, const char *trace, bool unsent, bool again, struct buf *out)
{
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_str(&w, "code", f->code);
    writer_str(&w, "message", f->message);
    if (f->rank >= 0)
        writer_i64(&w, "rank", f->rank);
    writer_str_set(&w, "pod", f->pod);
    writer_str_set(&w, "node", f->node);
    if (f->exited)
        writer_i64(&w, "exitCode", f->exit_code);
    if (f->retry_after_ms)
        writer_i64(&w, "retryAfterMs", f->retry_after_ms);
    if (unsent)
        writer_bool(&w, "ran", false);
    if (again)
        writer_bool(&w, "idempotent", true);
    writer_str_set(&w, "traceparent", trace);
    if (f->late.n) {
        writer_list(&w, "late");
        for (uint32_t i = 0; i < f->late.n; i++)
            writer_i64(&w, NULL, f->late.ranks[i]);
        writer_list_end(&w);
    }
    if (f->cause)
        writer_raw(&w, "cause", f->cause, f->cause_len);
    writer_object_end(&w);
    buf_append(out, buf_str(&w.buf), w.buf.len);
}

// Copies at most size - 1 bytes, and cuts between two characters.
static void copy_text(char *out, size_t size, const char *text)
{
    size_t len = strnlen(text, size);
    if (len == size) {
        len--;
        while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
            len--;
    }
    memcpy(out, text, len);
    out[len] = 0;
}

void call_failure_decode(struct call_failure *f, const char *json, size_t len)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *root = NULL;
    if (len <= BODY_MAX && json_parse_values(json, len, 1, &a, &root, &err) < 0)
        root = NULL;
    const char *code = json_str(json_get(root, "code"), &a), *message = json_str(json_get(root, "message"), &a);
    call_failure_set(f, ERR_INTERNAL, "the worker sent an error that the proxy cannot read (%zu bytes)", len);
    if (!str_empty(code) && message) {
        copy_text(f->code, sizeof f->code, code);
        copy_text(f->message, sizeof f->message, message);
        f->unran = json_is_false(json_get(root, "ran"));
        const struct json *cause = json_get(root, "cause");
        f->cause = cause && cause->type == JSON_OBJECT ? cause->text : NULL;
        f->cause_len = cause ? cause->len : 0;
    }
}

unsigned call_failure_kind(const struct call_failure *f)
{
    unsigned i = 0;
    while (i < CALL_FAILURE_KINDS - 1 && !str_eq(kinds[i], f->code))
        i++;
    return i;
}

const char *call_failure_kind_name(unsigned kind)
{
    return kinds[kind];
}
