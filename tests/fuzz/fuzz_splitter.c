// SPDX-License-Identifier: Apache-2.0
// The bytes of a watch (first byte 'w') or a list (any other), fed in pieces of the size that the second byte says: the
// pieces may change nothing about what comes out.
#include "operator/kube/line_splitter.h"
#include "operator/kube/list_splitter.h"
#include "operator/kube/watch_event.h"

#include "common/base/json.h"
#include "common/base/str.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_UNIT = 256 }; // small caps, so that they are met

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

struct outcome {
    uint64_t hash; // of all that was handed out, in order
    int count, code;
};

static void note(struct outcome *o, const char *bytes, size_t n)
{
    o->hash = o->hash * 31 + str_hash(bytes, n);
    o->count++;
}

static bool all_blank(const char *text, size_t len)
{
    return strspn(text, " \t\r") >= len;
}

// Where a guess finds JSON, it has found what is there, and at most blanks behind it.
static void check_guess(const char *line, size_t len, const struct watch_event *e)
{
    struct watch_event guess;
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    if (watch_event_guess(line, len, &guess) && json_parse(guess.object, guess.object_len, NULL, &a, &root, &err) == 0)
        must(guess.type == e->type && guess.object == e->object && guess.object_len >= e->object_len &&
             all_blank(e->object + e->object_len, guess.object_len - e->object_len));
    arena_done(&a);
}

static int on_line(void *ctx, const char *line, size_t len, bool whole, struct err *err)
{
    struct outcome *o = ctx;
    struct watch_event e;
    if (!whole) {
        must(len == MAX_UNIT);
        note(o, line, len);
        return 0;
    }
    must(len > 0 && len <= MAX_UNIT && !memchr(line, '\n', len));
    if (watch_event_scan(line, len, &e, err) < 0) {
        must(err->code == ERR_PROTO && err->msg[0]);
        return o->count % 2 ? err->code : 0; // both ways to go on
    }
    must(e.object > line && e.object + e.object_len < line + len);
    must(e.object[0] == '{' && e.object[e.object_len - 1] != '\0');
    check_guess(line, len, &e);
    note(o, e.object, e.object_len);
    return 0;
}

static int on_item(void *ctx, const char *item, size_t len, bool whole, struct err *err)
{
    (void)err;
    must(len >= 2 && len <= MAX_UNIT && item[0] == '{');
    must(whole ? item[len - 1] == '}' || item[len - 1] == ']' : len == MAX_UNIT);
    note(ctx, item, len);
    return 0;
}

static struct outcome feed_watch(const char *text, size_t len, size_t piece)
{
    struct outcome o = {0};
    struct err err = ERR_INIT;
    struct line_splitter s;
    line_splitter_init(&s, MAX_UNIT);
    for (size_t at = 0; at < len && o.code == 0; at += piece)
        o.code = line_splitter_feed(&s, text + at, piece < len - at ? piece : len - at, on_line, &o, &err);
    line_splitter_done(&s);
    return o;
}

static struct outcome feed_list(const char *text, size_t len, size_t piece)
{
    struct outcome o = {0};
    struct err err = ERR_INIT;
    const char *version, *token;
    struct list_splitter *s = list_splitter_new(MAX_UNIT);
    for (size_t at = 0; at < len && o.code == 0; at += piece)
        o.code = list_splitter_feed(s, text + at, piece < len - at ? piece : len - at, on_item, &o, &err);
    if (o.code == 0)
        o.code = list_splitter_end(s, &version, &token, &err);
    if (o.code == 0) {
        note(&o, version, strlen(version));
        note(&o, token, strlen(token));
    }
    must(o.code == 0 || err.msg[0]);
    list_splitter_free(s);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *text = (const char *)data + 2;
    size_t len = size - 2, piece = data[1] ? data[1] : 1;
    struct outcome (*feed)(const char *, size_t, size_t) = data[0] == 'w' ? feed_watch : feed_list;
    struct outcome whole = feed(text, len, len ? len : 1), pieces = feed(text, len, piece);
    must(whole.code == pieces.code && whole.count == pieces.count && whole.hash == pieces.hash);
    return 0;
}
