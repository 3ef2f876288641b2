// SPDX-License-Identifier: Apache-2.0
#include "operator/api/object_peek.h"

#include "common/base/json_scan.h"

struct rest { // the rest of the text
    const char *at, *end;
};

struct span {
    const char *at;
    size_t len;
};

static bool take(struct rest *r, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n) != 0)
        return false;
    r->at += n;
    return true;
}

// Takes a string without escapes.
static bool take_string(struct rest *r, struct span *ret)
{
    if (!take(r, "\""))
        return false;
    const char *from = r->at;
    r->at = json_plain_end(from, r->end);
    *ret = (struct span){from, (size_t)(r->at - from)};
    return take(r, "\"");
}

static bool take_name(struct rest *r, struct span *ret)
{
    return take_string(r, ret) && take(r, ":");
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

// `r` is at the first member of metadata.
static bool read_metadata(struct rest *r, struct object_peek *g)
{
    struct span name, value;
    while (take_name(r, &name) && take_string(r, &value)) {
        bool fits = span_is(name, "name")        ? keep(value, g->name, sizeof g->name)
                    : span_is(name, "namespace") ? keep(value, g->ns, sizeof g->ns)
                    : span_is(name, "uid")       ? keep(value, g->uid, sizeof g->uid)
                                                 : true;
        if (span_is(name, "resourceVersion"))
            return keep(value, g->version, sizeof g->version) && *g->name && *g->uid;
        if (!fits || !take(r, ","))
            return false;
    }
    return false;
}

bool object_peek(const char *json, size_t len, struct object_peek *ret)
{
    struct rest r = {json, json + len};
    struct span name, value;
    *ret = (struct object_peek){0};
    if (!take(&r, "{"))
        return false;
    while (take_name(&r, &name)) {
        if (span_is(name, "metadata"))
            return take(&r, "{") && read_metadata(&r, ret);
        if (!take_string(&r, &value) || !take(&r, ","))
            return false;
    }
    return false;
}

static bool find_member(const char *json, size_t len, const char *key, struct json_item *ret)
{
    struct json_scan scan;
    if (!len || *json != '{' || json_scan_begin(&scan, json, len) <= 0)
        return false;
    while (json_scan_next(&scan, ret) > 0)
        if (json_item_is(ret, key))
            return true;
    return false;
}

static bool keep_member(const struct json_item *metadata, const char *key, char *to, size_t size)
{
    struct json_item m;
    return find_member(metadata->text, metadata->len, key, &m) && m.len > 2 && *m.text == '"' &&
           keep((struct span){m.text + 1, m.len - 2}, to, size);
}

bool object_identify(const char *json, size_t len, struct object_peek *ret)
{
    struct json_item metadata;
    *ret = (struct object_peek){0};
    if (!find_member(json, len, "metadata", &metadata))
        return false;
    (void)keep_member(&metadata, "namespace", ret->ns, sizeof ret->ns);
    (void)keep_member(&metadata, "resourceVersion", ret->version, sizeof ret->version);
    return keep_member(&metadata, "name", ret->name, sizeof ret->name) &&
           keep_member(&metadata, "uid", ret->uid, sizeof ret->uid);
}
