// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/client/arguments.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/batch.h"
#include "common/wire/body_list.h"

#include <stdlib.h>
#include <string.h>

static bool blank_only(const cadre_client_json *j)
{
    for (size_t i = 0; i < j->len; i++)
        if (!strchr(" \t\r\n", j->text[i]))
            return false;
    return true;
}

// The length of the arguments. Also writes the bytes, if `out` is not NULL.
static size_t write_bodies(const struct arguments *a, char *out)
{
    _cleanup_(scatter_done) struct scatter s = SCATTER_INIT;
    struct scatter_source *sources = xcalloc(a->n, sizeof *sources);
    body_list_begin(&s, (uint32_t)a->n);
    for (size_t i = 0; i < a->n; i++) {
        sources[i] = (struct scatter_source){a->per_rank[i].text, a->per_rank[i].len};
        body_list_before(&s, sources[i].len);
        scatter_add(&s, (uint32_t)i, 0, sources[i].len);
        body_list_behind(&s, sources[i].len);
    }
    if (out)
        scatter_gather(&s, sources, out);
    size_t len = s.len;
    free(sources);
    return len;
}

static int of_ranks(const cadre_client_request *request, struct arguments *ret, struct err *err)
{
    *ret =
        (struct arguments){.per_rank = request->per_rank, .n = request->n_per_rank, .len = request->n_per_rank ? 1 : 2};
    if (ret->n && !ret->per_rank)
        return err_set(err, ERR_INVALID, "%s(): n_per_rank without per_rank", request->method);
    if (request->args.text || request->batch)
        return err_set(err, ERR_INVALID, "%s(): set only one of args and per_rank", request->method);
    if (request->rank >= 0)
        return err_set(err, ERR_INVALID, "%s(): arguments for each rank, and a call to rank %lld only", request->method,
                       (long long)request->rank);
    for (size_t i = 0; i < ret->n; i++) {
        const cadre_client_json *one = &ret->per_rank[i];
        bool batch = one->text && batch_is_safetensors(one->text, one->len);
        if (!one->text || (!batch && blank_only(one)))
            return err_set(err, ERR_INVALID, "%s(): the arguments of rank %zu are empty", request->method, i);
        ret->bodies = ret->bodies || batch;
        ret->len += one->len + 1;
    }
    if (ret->bodies)
        ret->len = write_bodies(ret, NULL);
    return 0;
}

static int of_batch(const cadre_client_request *request, struct arguments *ret, struct err *err)
{
    *ret = (struct arguments){.text = request->batch, .len = request->batch_len};
    if (request->args.text)
        return err_set(err, ERR_INVALID, "%s(): set only one of args and batch", request->method);
    if (!batch_is_safetensors(ret->text, ret->len) && !body_list_is(ret->text, ret->len))
        return err_set(err, ERR_INVALID, "%s(): the batch is neither a safetensors document nor a list of bodies",
                       request->method);
    return 0;
}

int arguments_of(const cadre_client_request *request, size_t max, struct arguments *ret, struct err *err)
{
    if (request->per_rank || request->n_per_rank) { // an empty list is a wrong number, not a call without arguments
        if (of_ranks(request, ret, err) < 0)
            return err->code;
    } else if (request->batch) {
        if (of_batch(request, ret, err) < 0)
            return err->code;
    } else if (request->args.text) {
        const char *text = request->args.text;
        size_t blanks = 0;
        while (blanks < request->args.len && strchr(" \t\r\n", text[blanks]))
            blanks++;
        bool any = str_eq(request->method, "object.put"); // it takes a value, not arguments
        if (blanks == request->args.len || (!any && text[blanks] != '[' && text[blanks] != '{'))
            return err_set(err, ERR_INVALID, "%s(): args must be a JSON list or object; a single one goes into a list",
                           request->method);
        *ret = (struct arguments){.text = text + blanks, .len = request->args.len - blanks};
    } else {
        *ret = (struct arguments){.text = "[]", .len = 2};
    }
    if (ret->len > max)
        return err_set(err, ERR_LIMIT, "%s(): %zu bytes of arguments; at most %zu", request->method, ret->len, max);
    return 0;
}

void arguments_write(const struct arguments *a, char *out)
{
    if (!a->per_rank) {
        if (a->len)
            memcpy(out, a->text, a->len);
        return;
    }
    if (a->bodies) {
        write_bodies(a, out);
        return;
    }
    for (size_t i = 0; i < a->n; i++) {
        *out++ = i ? ',' : '[';
        if (a->per_rank[i].len)
            memcpy(out, a->per_rank[i].text, a->per_rank[i].len);
        out += a->per_rank[i].len;
    }
    if (!a->n)
        *out++ = '[';
    *out = ']';
}
