// SPDX-License-Identifier: Apache-2.0
#include "operator/agents/printed.h"

#include "common/base/json.h"

static bool read_line(const struct json *v, struct arena *a, struct printed_line *ret)
{
    int64_t rank;
    if (v->type != JSON_LIST || json_count(v) != 2 || !json_i64(v->child, &rank) || rank < 0 || rank > INT32_MAX)
        return false;
    *ret = (struct printed_line){(uint32_t)rank, json_str(v->child->next, a)};
    return ret->text != NULL;
}

int printed_decode(const char *body, size_t len, struct arena *a, struct printed *ret, struct err *err)
{
    struct json *root;
    int64_t dropped = 0;
    int r = json_parse(body, len, NULL, a, &root, err);
    if (r < 0)
        return err_wrap(err, "OUTPUT of an agent");
    const struct json *lines = json_get(root, "lines");
    *ret = (struct printed){.group = json_str(json_get(root, "group"), a)};
    if (!ret->group || !lines || lines->type != JSON_LIST)
        return err_set(err, ERR_INVALID, "OUTPUT of an agent: needs \"group\" and \"lines\"");
    ret->lines = arena_array(a, json_count(lines) + 1, sizeof *ret->lines);
    JSON_FOREACH(v, lines)
        if (!read_line(v, a, &ret->lines[ret->n++]))
            return err_set(err, ERR_INVALID, "OUTPUT of an agent: \"lines\" must be a list of [rank, text]");
    ret->dropped = json_i64(json_get(root, "dropped"), &dropped) && dropped > 0 ? (size_t)dropped : 0;
    return 0;
}
