// SPDX-License-Identifier: Apache-2.0
#include "operator/api/glance.h"

#include "common/base/json_scan.h"

struct cursor {
    const char *at, *end;
};

struct span {
    const char *at;
    size_t len;
};

static bool take(struct cursor *c, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, text, n) != 0)
        return false;
    c->at += n;
    return true;
}

// A string without escapes.
static bool take_string(struct cursor *c, struct span *ret)
{
    if (!take(c, "\""))
        return false;
    const char *from = c->at;
    c->at = json_plain_end(from, c->end);
    *ret = (struct span){from, (size_t)(c->at - from)};
    return take(c, "\"");
}

static bool take_name(struct cursor *c, struct span *ret)
{
    return take_string(c, ret) && take(c, ":");
}

static bool span_is(struct span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static bool keep(struct span s, char *to, size_t size)
{
    if (!s.len || s.len >= size)
        return false;
    memcpy(to, s.at, s.len);
    to[s.len] = '\0';
    return true;
}

// At the first member of metadata.
static bool read_metadata(struct cursor *c, struct glance *g)
{
    struct span name, value;
    while (take_name(c, &name) && take_string(c, &value)) {
        bool fits = span_is(name, "name")        ? keep(value, g->name, sizeof g->name)
                    : span_is(name, "namespace") ? keep(value, g->ns, sizeof g->ns)
                    : span_is(name, "uid")       ? keep(value, g->uid, sizeof g->uid)
                                                 : true;
        if (span_is(name, "resourceVersion"))
            return keep(value, g->version, sizeof g->version) && *g->name && *g->uid;
        if (!fits || !take(c, ","))
            return false;
    }
    return false;
}

bool glance_read(const char *json, size_t len, struct glance *ret)
{
    struct cursor c = {json, json + len};
    struct span name, value;
    *ret = (struct glance){0};
    if (!take(&c, "{"))
        return false;
    while (take_name(&c, &name)) {
        if (span_is(name, "metadata"))
            return take(&c, "{") && read_metadata(&c, ret);
        if (!take_string(&c, &value) || !take(&c, ","))
            return false;
    }
    return false;
}
