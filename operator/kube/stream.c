// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/stream.h"

#include "common/base/json_scan.h"

#include <string.h>

enum {
    STREAM_MAX_LINE = 8 * 1024 * 1024, // etcd refuses objects over 1.5 MiB; JSON of one may be a few times that
    STREAM_KEEP = 64 * 1024,           // memory that one rare long line needed is given back
};

void line_splitter_init(struct line_splitter *s, size_t max_line)
{
    buf_init(&s->partial, max_line ? max_line : STREAM_MAX_LINE);
}

void line_splitter_done(struct line_splitter *s)
{
    buf_done(&s->partial);
}

static int line_too_long(const struct line_splitter *s, struct err *err)
{
    return err_set(err, ERR_LIMIT, "a line of the watch is longer than %zu bytes", s->partial.cap);
}

static int line_emit(const char *line, size_t len, line_fn fn, void *ctx, struct err *err)
{
    while (len && json_is_space(line[len - 1]))
        len--;
    return len ? fn(ctx, line, len, err) : 0;
}

int line_splitter_feed(struct line_splitter *s, const char *bytes, size_t n, line_fn fn, void *ctx, struct err *err)
{
    while (n) {
        const char *newline = memchr(bytes, '\n', n);
        size_t len = newline ? (size_t)(newline - bytes) : n;
        if (len > s->partial.cap - s->partial.len)
            return line_too_long(s, err);
        int r = 0;
        if (newline && !s->partial.len) {
            r = line_emit(bytes, len, fn, ctx, err); // whole lines are not copied
        } else {
            (void)buf_append(&s->partial, bytes, len);
            if (newline) {
                r = line_emit(s->partial.data, s->partial.len, fn, ctx, err);
                if (s->partial.size > STREAM_KEEP)
                    buf_done(&s->partial);
                else
                    buf_reset(&s->partial);
            }
        }
        if (r < 0)
            return r;
        len += newline ? 1 : 0;
        bytes += len;
        n -= len;
    }
    return 0;
}

struct span {
    const char *at;
    size_t len;
};

static bool span_is(struct span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static bool event_type(struct span s, enum watch_event_type *ret)
{
    static const struct {
        const char *text;
        enum watch_event_type type;
    } types[] = {
        {"\"ADDED\"", WATCH_ADDED},       {"\"MODIFIED\"", WATCH_MODIFIED}, {"\"DELETED\"", WATCH_DELETED},
        {"\"BOOKMARK\"", WATCH_BOOKMARK}, {"\"ERROR\"", WATCH_ERROR},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (span_is(s, types[i].text)) {
            *ret = types[i].type;
            return true;
        }
    }
    return false;
}

// Fills the two members that matter, whatever their order; false if the line is not a JSON object.
static bool find_members(const char *line, size_t len, struct span *ret_type, struct span *ret_object)
{
    struct json_scan s;
    struct json_item m;
    int got;
    if (!json_scan_begin(&s, line, len) || s.close != '}')
        return false;
    s.counts = true; // an object of others is nested as deep as they like
    while ((got = json_scan_next(&s, &m)) > 0) {
        if (json_item_is(&m, "type"))
            *ret_type = (struct span){m.text, m.len};
        else if (json_item_is(&m, "object"))
            *ret_object = (struct span){m.text, m.len};
    }
    return got == 0;
}

int watch_event_scan(const char *line, size_t len, struct watch_event *ret, struct err *err)
{
    struct span type = {0}, object = {0};
    int shown = (int)(len < 80 ? len : 80);
    if (!find_members(line, len, &type, &object))
        return err_set(err, ERR_PROTO, "a line of the watch is not a JSON object: %.*s", shown, line);
    if (!event_type(type, &ret->type))
        return err_set(err, ERR_PROTO, "an event of the watch has no known type: %.*s", shown, line);
    if (!object.len || object.at[0] != '{')
        return err_set(err, ERR_PROTO, "an event of the watch has no object: %.*s", shown, line);
    ret->object = object.at;
    ret->object_len = object.len;
    return 0;
}

bool watch_event_guess(const char *line, size_t len, struct watch_event *ret)
{
    static const struct {
        const char *text;
        enum watch_event_type type;
    } starts[] = {
        {"{\"type\":\"ADDED\",\"object\":", WATCH_ADDED},
        {"{\"type\":\"MODIFIED\",\"object\":", WATCH_MODIFIED},
        {"{\"type\":\"DELETED\",\"object\":", WATCH_DELETED},
    };
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        size_t n = strlen(starts[i].text);
        if (len < n + 3 || memcmp(line, starts[i].text, n) != 0 || line[n] != '{' || line[len - 1] != '}')
            continue;
        *ret = (struct watch_event){starts[i].type, line + n, len - n - 1};
        return true;
    }
    return false;
}
