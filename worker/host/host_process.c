// SPDX-License-Identifier: Apache-2.0
#include "worker/host/host_process.h"

#include "common/base/str.h"
#include "worker/host/number.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int read_number(const char *name, int fallback, int min, int *ret, struct err *err)
{
    const char *text = getenv(name);
    int64_t v = fallback;
    if (!str_empty(text) && (!str_to_i64(text, &v) || v < min || v > INT_MAX))
        return err_set(err, ERR_INVALID, "environment: %s=%s: must be a number from %d", name, text, min);
    *ret = (int)v;
    return 0;
}

int process_from_env(struct cadre_worker *ret, struct err *err)
{
    struct cadre_worker w = {0};
    if (read_number("RANK", 0, 0, &w.rank, err) < 0 || read_number("WORLD_SIZE", 1, 1, &w.world_size, err) < 0 ||
        read_number("LOCAL_RANK", 0, 0, &w.local_rank, err) < 0 ||
        read_number("CADRE_DEVICE", -1, -1, &w.device, err) < 0)
        return err->code;
    if (w.rank >= w.world_size)
        return err_set(err, ERR_INVALID, "environment: RANK=%d is not below WORLD_SIZE=%d", w.rank, w.world_size);
    *ret = w;
    return 0;
}

CADRE_EXPORT int cadre_rank(const cadre_worker *w)
{
    return w->rank;
}

CADRE_EXPORT int cadre_world_size(const cadre_worker *w)
{
    return w->world_size;
}

CADRE_EXPORT int cadre_local_rank(const cadre_worker *w)
{
    return w->local_rank;
}

CADRE_EXPORT int cadre_device(const cadre_worker *w)
{
    return w->device;
}

CADRE_EXPORT cadre_result cadre_create_fail(cadre_worker *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->message, sizeof w->message, fmt, ap);
    va_end(ap);
    return CADRE_ERROR;
}

static cadre_result outcome(struct cadre_worker *w, int r, const struct err *err)
{
    if (r == 0)
        return CADRE_OK;
    cadre_create_fail(w, "%s", err->msg);
    return CADRE_INVALID_ARGUMENT;
}

static int too_late(struct err *err)
{
    return err_set(err, ERR_INVALID, "rules, meshes and concurrency groups can be published during create() only");
}

CADRE_EXPORT cadre_result cadre_method_rule(cadre_worker *w, const char *method, const char *split, const char *collect)
{
    struct err err = ERR_INIT;
    return outcome(
        w, w->init ? published_add_rule(&w->published, w->class, method, split, collect, &err) : too_late(&err), &err);
}

CADRE_EXPORT cadre_result cadre_method_idempotent(cadre_worker *w, const char *method)
{
    struct err err = ERR_INIT;
    return outcome(w, w->init ? published_add_idempotent(&w->published, w->class, method, &err) : too_late(&err), &err);
}

CADRE_EXPORT cadre_result cadre_publish_mesh(cadre_worker *w, const char *name, const char *const *dims,
                                             const uint32_t *sizes, size_t n_dims)
{
    struct err err = ERR_INIT;
    uint32_t world = (uint32_t)w->world_size;
    return outcome(
        w, w->init ? published_add_mesh(&w->published, world, name, dims, sizes, n_dims, &err) : too_late(&err), &err);
}

CADRE_EXPORT cadre_result cadre_concurrency_group(cadre_worker *w, const char *name, unsigned limit,
                                                  const char *const *methods, size_t n_methods)
{
    struct err err = ERR_INIT;
    return outcome(w,
                   w->init ? published_add_group(&w->published, w->class, name, limit, methods, n_methods, &err)
                           : too_late(&err),
                   &err);
}

static cadre_result wrong_type(struct cadre_worker *w, const char *name, const struct json *v, const char *wanted)
{
    cadre_create_fail(w, "init: \"%s\" must be %s, it is a %s", name, wanted, json_type_name(v->type));
    return CADRE_INVALID_ARGUMENT;
}

CADRE_EXPORT cadre_result cadre_init_double(cadre_worker *w, const char *name, double fallback, double *ret)
{
    const struct json *v = json_get(w->init, name);
    *ret = fallback;
    return !v || number_read(v, ret) ? CADRE_OK : wrong_type(w, name, v, "a number that fits a double");
}

CADRE_EXPORT cadre_result cadre_init_int64(cadre_worker *w, const char *name, int64_t fallback, int64_t *ret)
{
    const struct json *v = json_get(w->init, name);
    *ret = fallback;
    return !v || json_i64(v, ret) ? CADRE_OK : wrong_type(w, name, v, "a whole number of 64 bits");
}

CADRE_EXPORT cadre_result cadre_init_string(cadre_worker *w, const char *name, const char *fallback, const char **ret)
{
    const struct json *v = json_get(w->init, name);
    *ret = v ? json_str(v, w->arena) : fallback;
    return !v || *ret ? CADRE_OK : wrong_type(w, name, v, "a string");
}
