// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/client/client_printed.h"

#include "common/base/json.h"
#include "common/base/mem.h"

void printed_tell(const struct settings *s, const char *body, size_t len)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    const struct json *root = json_read(body, len, &a);
    int64_t dropped = 0;
    const char *group = json_str(json_get(root, "group"), &a);
    json_i64(json_get(root, "dropped"), &dropped);
    cadre_client_output line = {.group = group ? group : "", .ranks = "", .dropped = (uint64_t)dropped};
    if (dropped > 0 && s->on_output)
        s->on_output(s->ctx, &line);
    line.dropped = 0;
    JSON_FOREACH(v, json_get(root, "lines")) {
        const char *ranks = json_str(json_get(v, "ranks"), &a), *text = json_str(json_get(v, "text"), &a);
        line.ranks = ranks ? ranks : "";
        line.text = text;
        if (text && s->on_output) // it must not close the client, and the client may be ending
            s->on_output(s->ctx, &line);
    }
}
