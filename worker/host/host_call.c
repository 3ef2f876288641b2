// SPDX-License-Identifier: Apache-2.0
#include "worker/host/host_call.h"

#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/wire/share.h"
#include "common/wire/via.h"
#include "common/ws/pool.h"
#include "worker/device/device.h"
#include "worker/host/number.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void drop_shared(struct cadre_call *c)
{
    if (c->shared)
        pool_give(c->pool, TAKE_PTR(c->shared));
}

void call_init(struct cadre_call *c, const char *args, size_t len)
{
    memset(c, 0, offsetof(struct cadre_call, first));
    call_set_args(c, args, len);
    c->method = "?";
    c->result = BUF_INIT(CALL_RESULT_MAX);
    c->message = BUF_INIT(CALL_MESSAGE_MAX);
    arena_init_in(&c->arena, c->first, sizeof c->first);
}

void call_done(struct cadre_call *c)
{
    result_batch_free(TAKE_PTR(c->result_batch));
    free(TAKE_PTR(c->aligned));
    call_device_done(&c->device);
    arena_done(&c->arena);
    buf_done(&c->result);
    drop_shared(c);
    buf_done(&c->message);
}

static void set_message(struct cadre_call *c, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

static void set_message(struct cadre_call *c, const char *fmt, va_list ap)
{
    char text[CALL_MESSAGE_MAX];
    vsnprintf(text, sizeof text, fmt, ap);
    buf_reset(&c->message);
    buf_puts(&c->message, text);
    c->missing = false;
}

cadre_result call_fail(struct cadre_call *c, cadre_result r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    set_message(c, fmt, ap);
    va_end(ap);
    return r;
}

// Turns an error of the device into the result of the method that used it.
cadre_result call_fail_device(struct cadre_call *c, const struct err *err)
{
    cadre_result r = err->code == ERR_NOMEM      ? CADRE_OUT_OF_MEMORY
                     : err->code == ERR_INVALID  ? CADRE_NO_DEVICE
                     : err->code == ERR_CANCELED ? CADRE_CANCELED
                                                 : CADRE_ERROR;
    if (err->code == ERR_GONE)
        c->loss = arena_strdup(&c->arena, err->msg);
    return call_fail(c, r, "%s(): %s", c->method, err->msg);
}

// For the client, a missing argument is a wrong argument: NOT_FOUND would mean that the group or the method does not
// exist.
static const char *result_code(const struct cadre_call *c, cadre_result r)
{
    switch (r) {
    case CADRE_INVALID_ARGUMENT:
        return err_name(ERR_INVALID);
    case CADRE_NOT_FOUND:
        return err_name(c->missing ? ERR_INVALID : ERR_NOT_FOUND);
    case CADRE_OUT_OF_MEMORY:
        return err_name(ERR_NOMEM);
    case CADRE_NO_DEVICE:
        return "NO_DEVICE";
    case CADRE_CANCELED:
        return err_name(ERR_CANCELED);
    case CADRE_UNAVAILABLE:
        return err_name(ERR_UNAVAILABLE);
    default:
        return "FAILED";
    }
}

void call_answered(struct cadre_call *c, cadre_result r)
{
    c->failed = r != CADRE_OK;
    if (!c->failed)
        return;
    c->code = result_code(c, r);
    if (!c->message.len)
        buf_printf(&c->message, "%s() failed (cadre_result %d) and did not say why", c->method, (int)r);
}

void call_set_args(struct cadre_call *c, const char *args, size_t len)
{
    c->args = len ? args : "[]";
    c->args_len = len ? len : 2;
}

void call_set_device_args(struct cadre_call *c, const char *head, size_t len, struct region *values)
{
    call_set_args(c, head, len);
    c->device.args = values;
}

void call_refuse(struct cadre_call *c, const struct err *err)
{
    c->failed = true;
    c->code = err_name(err->code);
    buf_reset(&c->message);
    buf_puts(&c->message, err->msg);
}

void call_note_loss(struct cadre_call *c)
{
    struct err err = ERR_INIT;
    if (!c->loss && rank_device_has_gpu(c->device.rank) && device_check_thread(&err) == ERR_GONE)
        c->loss = arena_strdup(&c->arena, err.msg);
}

void call_cancel(struct cadre_call *c)
{
    atomic_store(&c->canceled, true);
    nested_wake(&c->nested);
}

static void encode_error(struct buf *out, const char *code, const char *message, const char *cause, bool ran)
{
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_str(&w, "code", code);
    writer_str(&w, "message", message);
    if (!ran)
        writer_bool(&w, "ran", false);
    if (cause)
        writer_raw(&w, "cause", cause, strlen(cause));
    writer_object_end(&w);
    buf_append(out, buf_str(&w.buf), w.buf.len);
}

void call_encode_error(struct buf *out, const char *code, const char *message, bool ran)
{
    encode_error(out, code, message, NULL, ran);
}

char *call_take_shared(struct cadre_call *c, size_t *ret_len)
{
    *ret_len = c->shared_len;
    return c->failed ? NULL : TAKE_PTR(c->shared);
}

bool call_encode(struct cadre_call *c, struct buf *out)
{
    if (c->failed) {
        encode_error(out, c->code, buf_str(&c->message), c->cause, c->ran);
    } else if (c->result.len) {
        buf_done(out);
        *out = c->result;
        c->result = BUF_INIT(CALL_RESULT_MAX);
    } else {
        buf_puts(out, "null");
    }
    return !c->failed;
}

cadre_result call_missing(struct cadre_call *c, const char *name, size_t position)
{
    if (c->root)
        call_fail(c, CADRE_NOT_FOUND, "%s() needs an argument '%s' (position %zu)", c->method, name ? name : "?",
                  position);
    else
        call_fail(c, CADRE_NOT_FOUND, "%s() needs '%s', which the batch that it was called with does not have",
                  c->method, name ? name : "?");
    c->missing = true;
    return CADRE_NOT_FOUND;
}

bool call_names_have(const struct call_names *names, const char *name, size_t len)
{
    for (size_t i = 0; i < names->n; i++)
        if (strlen(names->items[i]) == len && memcmp(names->items[i], name, len) == 0)
            return true;
    return false;
}

// The ABI: results

char *call_place_result(struct cadre_call *c, size_t len)
{
    buf_reset(&c->result);
    drop_shared(c);
    call_device_drop_result(&c->device);
    if (c->pool && len >= SHARE_MIN && len <= CALL_RESULT_MAX && (c->shared = pool_take(c->pool, len))) {
        c->shared_len = len;
        return c->shared;
    }
    if (buf_reserve(&c->result, len) < 0)
        return NULL;
    c->result.len = len;
    c->result.data[len] = '\0'; // buffers end with NUL
    return c->result.data;
}

cadre_result call_return(struct cadre_call *c, const char *body, size_t len)
{
    result_batch_free(TAKE_PTR(c->result_batch));
    char *place = call_place_result(c, len);
    if (!place)
        return call_fail(c, CADRE_OUT_OF_MEMORY, "%s() returns %zu bytes; at most %zu", c->method, len,
                         CALL_RESULT_MAX);
    if (len)
        memcpy(place, body, len);
    return CADRE_OK;
}

CADRE_EXPORT cadre_result cadre_return_double(cadre_call *c, double v)
{
    char text[NUMBER_SIZE];
    if (!number_format(v, text))
        return call_fail(c, CADRE_INVALID_ARGUMENT, "%s() returns %f, which is not a number in JSON", c->method, v);
    return call_return(c, text, strlen(text));
}

CADRE_EXPORT cadre_result cadre_return_int64(cadre_call *c, int64_t v)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, v);
    return call_return(c, text, (size_t)len);
}

CADRE_EXPORT cadre_result cadre_return_string(cadre_call *c, const char *s)
{
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    writer_str(&w, NULL, s);
    cadre_result r = call_return(c, buf_str(&w.buf), w.buf.len);
    return r;
}

CADRE_EXPORT cadre_result cadre_return_json(cadre_call *c, const char *json, size_t len)
{
    _cleanup_(arena_done) struct arena a;
    struct err err = ERR_INIT;
    struct json *root;
    _Alignas(max_align_t) char memory[1024];
    arena_init_in(&a, memory, sizeof memory);
    return json_parse_values(json, len, 0, &a, &root, &err) == 0
               ? call_return(c, json, len)
               : call_fail(c, CADRE_INVALID_ARGUMENT, "%s() returns what is %s", c->method, err.msg);
}

CADRE_EXPORT cadre_result cadre_fail(cadre_call *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    set_message(c, fmt, ap);
    va_end(ap);
    return CADRE_ERROR;
}

CADRE_EXPORT int cadre_call_canceled(const cadre_call *c)
{
    return atomic_load(&c->canceled);
}
