// SPDX-License-Identifier: Apache-2.0
#include "common/wire/call_head.h"

#include "common/base/json_scan.h"
#include "common/base/mem.h"
#include "common/wire/traceparent.h"
#include "common/wire/via.h"

#include <string.h>

// Names of methods and groups have no characters that need an escape.
static int get_name(const struct json_item *m, size_t max, const char **ret, size_t *ret_len, struct err *err)
{
    bool plain = m->len > 2 && m->text[0] == '"' && !memchr(m->text, '\\', m->len);
    for (size_t i = 0; plain && i < m->len; i++)
        plain = (unsigned char)m->text[i] >= 0x20 && (unsigned char)m->text[i] < 0x7f;
    if (!plain || m->len - 2 > max)
        return err_set(err, ERR_INVALID, "the head of the call: \"%.*s\" must be a name of 1 to %zu plain characters",
                       (int)m->key_len, m->key, max);
    *ret = m->text + 1;
    *ret_len = m->len - 2;
    return 0;
}

static int get_count(const struct json_item *m, int64_t max, int64_t *ret, struct err *err)
{
    int64_t v = 0;
    bool good = m->len > 0 && m->len <= 18;
    for (size_t i = 0; good && i < m->len; i++) {
        good = m->text[i] >= '0' && m->text[i] <= '9';
        v = v * 10 + (m->text[i] - '0');
    }
    if (!good || v < 1 || v > max)
        return err_set(err, ERR_INVALID, "the head of the call: \"%.*s\" must be a whole number from 1 to %lld",
                       (int)m->key_len, m->key, (long long)max);
    *ret = v;
    return 0;
}

static int get_when(const struct json_item *m, bool *ret, struct err *err)
{
    bool refuse = m->len == 8 && memcmp(m->text, "\"Refuse\"", 8) == 0;
    if (!refuse && !(m->len == 6 && memcmp(m->text, "\"Wait\"", 6) == 0))
        return err_set(err, ERR_INVALID, "the head of the call: \"whenNotReady\" must be \"Wait\" or \"Refuse\"");
    *ret = refuse;
    return 0;
}

static int get_flag(const struct json_item *m, bool *ret, struct err *err)
{
    *ret = m->len == 4 && memcmp(m->text, "true", 4) == 0;
    if (!*ret && !(m->len == 5 && memcmp(m->text, "false", 5) == 0))
        return err_set(err, ERR_INVALID, "the head of the call: \"%.*s\" must be true or false", (int)m->key_len,
                       m->key);
    return 0;
}

static int get_via(const struct json_item *m, struct call_head *h, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *list;
    h->via = m->text;
    h->via_len = m->len;
    if (m->len > CALL_HEAD_VIA_MAX)
        return err_set(err, ERR_INVALID, "the head of the call: \"via\" has %zu bytes; at most %d", m->len,
                       CALL_HEAD_VIA_MAX);
    if (json_parse(m->text, m->len, NULL, &a, &list, err) < 0 || via_check(list, err) < 0)
        return err_wrap(err, "the head of the call: \"via\"");
    return 0;
}

static int get_member(const struct json_item *m, struct call_head *h, struct err *err)
{
    if (json_item_is(m, "method"))
        return get_name(m, CALL_HEAD_METHOD_MAX, &h->method, &h->method_len, err);
    if (json_item_is(m, "group"))
        return get_name(m, CALL_HEAD_GROUP_MAX, &h->group, &h->group_len, err);
    if (json_item_is(m, "role"))
        return get_name(m, CALL_HEAD_ROLE_MAX, &h->role, &h->role_len, err);
    if (json_item_is(m, "timeoutMs"))
        return get_count(m, CALL_HEAD_TIMEOUT_MAX_MS, &h->timeout_ms, err);
    if (json_item_is(m, "attempt"))
        return get_count(m, UINT32_MAX, &h->attempt, err);
    if (json_item_is(m, "whenNotReady"))
        return get_when(m, &h->refuse, err);
    if (json_item_is(m, "pad"))
        return get_flag(m, &h->pad, err);
    if (json_item_is(m, "positional"))
        return get_flag(m, &h->positional, err);
    if (json_item_is(m, "keep"))
        return get_flag(m, &h->keep, err);
    if (json_item_is(m, "pin"))
        return get_flag(m, &h->pin, err);
    if (json_item_is(m, "via"))
        return get_via(m, h, err);
    if (json_item_is(m, "traceparent")) {
        bool quoted = m->len > 2 && m->text[0] == '"';
        h->trace = quoted && traceparent_valid(m->text + 1, m->len - 2) ? m->text + 1 : NULL;
    } else if (json_item_is(m, "split")) {
        h->split = m->text;
        h->split_len = m->len;
    } else if (json_item_is(m, "collect")) {
        h->collect = m->text;
        h->collect_len = m->len;
    }
    return 0;
}

int call_head_decode(const char *json, size_t len, struct call_head *ret, struct err *err)
{
    struct call_head h = {0};
    struct json_scan s;
    struct json_item m;
    if (!json_scan_begin(&s, json, len) || s.close != '}')
        return err_set(err, ERR_INVALID, "the head of the call is not a JSON object");
    int got;
    while ((got = json_scan_next(&s, &m)) > 0) {
        int r = get_member(&m, &h, err);
        if (r < 0)
            return r;
    }
    if (got < 0)
        return err_set(err, ERR_INVALID, "the head of the call is not valid JSON at byte %zu", (size_t)(s.p - json));
    if (!h.method)
        return err_set(err, ERR_INVALID, "the head of the call has no \"method\"");
    *ret = h;
    return 0;
}
