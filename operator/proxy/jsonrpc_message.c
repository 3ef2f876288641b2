// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/jsonrpc_message.h"

#include "common/base/json_scan.h"
#include "common/base/mem.h"
#include "common/wire/blob.h"

#include <string.h>

void jsonrpc_message_begin(struct jsonrpc_message *m, struct blob *blob, const char *text, size_t len)
{
    *m = (struct jsonrpc_message){.text = text, .len = len, .blob = blob_ref(blob)};
}

void jsonrpc_message_done(struct jsonrpc_message *m)
{
    blob_unref(m->blob);
    *m = (struct jsonrpc_message){0};
}

static int not_json(const struct jsonrpc_message *m, struct err *err)
{
    return err_set(err, ERR_INVALID, "not valid JSON at byte %zu, or nested deeper than %d levels", m->check.at,
                   JSON_DEPTH_MAX);
}

int jsonrpc_message_read(struct jsonrpc_message *m, struct tenant *t, struct err *err)
{
    while (m->check.at < m->len) {
        if (!tenant_has_turn(t))
            return 0;
        size_t n = MIN(m->len - m->check.at, tenant_slice(t));
        tenant_spend(t, n / TENANT_UNIT_BYTES);
        if (!json_check_feed(&m->check, m->text + m->check.at, n))
            return not_json(m, err);
    }
    return json_check_ends(&m->check) ? 1 : not_json(m, err);
}

// The value is left out of the text to parse. Two bytes stand for it.
static bool is_left_out(const struct jsonrpc_message *m, const struct json_long *v)
{
    return v->depth == 2 || m->text[v->at] != '{';
}

// Returns the text without the long values. ret_at: where these begin in it.
static char *shorten(const struct jsonrpc_message *m, struct arena *a, size_t *ret_len, size_t ret_at[JSON_LONGS_MAX],
                     struct err *err)
{
    size_t len = m->len, at = 0;
    for (unsigned i = 0; i < MIN(m->check.longs_n, (unsigned)JSON_LONGS_MAX); i++)
        if (is_left_out(m, &m->check.longs[i]))
            len -= m->check.longs[i].len - 2;
    if (m->check.longs_n > JSON_LONGS_MAX || len > JSONRPC_LONG) {
        err_set(err, ERR_INVALID,
                "a request of %zu bytes has too many other values beside its arguments: at most %d long values and %d "
                "bytes",
                m->len, JSON_LONGS_MAX, JSONRPC_LONG);
        return NULL;
    }
    char *text = arena_alloc(a, len), *p = text;
    for (unsigned i = 0; i < m->check.longs_n; i++) {
        const struct json_long *v = &m->check.longs[i];
        if (!is_left_out(m, v))
            continue;
        p = mempcpy(p, m->text + at, v->at - at);
        ret_at[i] = (size_t)(p - text);
        *p++ = m->text[v->at];
        at = v->at + v->len;
        *p++ = m->text[at - 1];
    }
    memcpy(p, m->text + at, m->len - at);
    *ret_len = len;
    return text;
}

// An object with long members begins before them. Nothing that was left out is between its name and its bracket.
static void place_objects(const struct jsonrpc_message *m, size_t at[JSON_LONGS_MAX])
{
    size_t gone = 0;
    for (unsigned i = 0, first = 0; i < m->check.longs_n; i++) {
        const struct json_long *v = &m->check.longs[i];
        if (v->depth == 2)
            continue;
        if (!is_left_out(m, v))
            at[i] = v->at - gone;
        for (; first <= i; first++)
            gone += is_left_out(m, &m->check.longs[first]) ? m->check.longs[first].len - 2 : 0;
    }
}

// Gives long values, and objects with long members, their text in the message.
static void restore(const struct jsonrpc_message *m, const char *text, const size_t at[JSON_LONGS_MAX],
                    struct json *parent, uint8_t depth)
{
    for (struct json *v = parent->child; v; v = v->next) {
        unsigned i = 0;
        while (i < m->check.longs_n && (m->check.longs[i].depth != depth || text + at[i] != v->text))
            i++;
        if (i == m->check.longs_n)
            continue;
        v->text = m->text + m->check.longs[i].at;
        v->len = (uint32_t)m->check.longs[i].len;
        if (depth == 1)
            restore(m, text, at, v, 2);
    }
}

static const char *const bulk[] = {"args", "perRank", "value", NULL};

static int parse_long(const struct jsonrpc_message *m, struct arena *a, struct json **ret, struct err *err)
{
    size_t len, at[JSON_LONGS_MAX], begin = 0;
    while (json_is_space(m->text[begin]))
        begin++;
    if (m->text[begin] != '{') { // everything that is not an object is refused, whatever is in it
        *ret = arena_new(a, struct json);
        (*ret)->type = m->text[begin] == '[' ? JSON_LIST : JSON_STRING;
        return 0;
    }
    const char *text = shorten(m, a, &len, at, err);
    if (!text || json_parse_trusted(text, len, bulk, a, ret, err) < 0)
        return err->code;
    place_objects(m, at);
    restore(m, text, at, *ret, 1);
    return 0;
}

int jsonrpc_message_parse(const struct jsonrpc_message *m, struct arena *a, struct json **ret, struct err *err)
{
    return m->blob ? parse_long(m, a, ret, err) : json_parse(m->text, m->len, bulk, a, ret, err);
}
