// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/stream.h"

#include "common/base/json_scan.h"
#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

// etcd refuses objects over 1.5 MiB. JSON writes some bytes as six ("\u003c" for "<"), so the JSON of an object has at
// most 6 x 1.5 MiB = 9 MiB and the names of its members.
enum {
    STREAM_MAX_OBJECT = 16 * 1024 * 1024,
    STREAM_KEEP = 64 * 1024, // memory that stays allocated after a rare long line
};

void line_splitter_init(struct line_splitter *s, size_t max_line)
{
    *s = (struct line_splitter){.partial = BUF_INIT(max_line ? max_line : STREAM_MAX_OBJECT)};
}

void line_splitter_done(struct line_splitter *s)
{
    buf_done(&s->partial);
}

void line_splitter_reset(struct line_splitter *s)
{
    buf_reset(&s->partial);
    s->skipping = false;
}

// Hands out what the buffer contains, and empties it.
static int buf_emit(struct buf *b, size_t len, bool whole, text_fn fn, void *ctx, struct err *err)
{
    int r = len ? fn(ctx, b->data, len, whole, err) : 0;
    if (b->size > STREAM_KEEP)
        buf_done(b);
    else
        buf_reset(b);
    return r;
}

// Hands out the beginning of a text that is longer than the buffer may be.
static int beginning_emit(struct buf *b, const char *bytes, text_fn fn, void *ctx, struct err *err)
{
    (void)buf_append(b, bytes, b->cap - b->len);
    return buf_emit(b, b->len, false, fn, ctx, err);
}

static size_t trimmed(const char *line, size_t len)
{
    while (len && json_is_space(line[len - 1]))
        len--;
    return len;
}

// Takes a part of a line, up to its end if `ended`.
static int line_take(struct line_splitter *s, const char *bytes, size_t len, bool ended, text_fn fn, void *ctx,
                     struct err *err)
{
    if (s->skipping)
        return 0;
    if (len > s->partial.cap - s->partial.len) {
        s->skipping = true;
        return beginning_emit(&s->partial, bytes, fn, ctx, err);
    }
    if (ended && !s->partial.len) { // whole lines are not copied
        len = trimmed(bytes, len);
        return len ? fn(ctx, bytes, len, true, err) : 0;
    }
    (void)buf_append(&s->partial, bytes, len);
    return ended ? buf_emit(&s->partial, trimmed(s->partial.data, s->partial.len), true, fn, ctx, err) : 0;
}

int line_splitter_feed(struct line_splitter *s, const char *bytes, size_t n, text_fn fn, void *ctx, struct err *err)
{
    while (n) {
        const char *newline = memchr(bytes, '\n', n);
        size_t len = newline ? (size_t)(newline - bytes) : n;
        int r = line_take(s, bytes, len, newline, fn, ctx, err);
        if (r < 0)
            return r;
        if (newline) {
            s->skipping = false;
            len++;
        }
        bytes += len;
        n -= len;
    }
    return 0;
}

static bool event_type(const struct json_item *m, enum watch_event_type *ret)
{
    static const struct {
        const char *text;
        enum watch_event_type type;
    } types[] = {
        {"\"ADDED\"", WATCH_ADDED},       {"\"MODIFIED\"", WATCH_MODIFIED}, {"\"DELETED\"", WATCH_DELETED},
        {"\"BOOKMARK\"", WATCH_BOOKMARK}, {"\"ERROR\"", WATCH_ERROR},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (m->len == strlen(types[i].text) && memcmp(m->text, types[i].text, m->len) == 0) {
            *ret = types[i].type;
            return true;
        }
    }
    return false;
}

// Finds the two members in any order. Returns false if the line is not a JSON object.
static bool find_members(const char *line, size_t len, struct json_item *ret_type, struct json_item *ret_object)
{
    struct json_scan s;
    struct json_item m;
    int got;
    if (!json_scan_begin(&s, line, len) || s.close != '}')
        return false;
    s.counts = true; // objects of other programs may be nested at any depth
    while ((got = json_scan_next(&s, &m)) > 0) {
        if (json_item_is(&m, "type"))
            *ret_type = m;
        else if (json_item_is(&m, "object"))
            *ret_object = m;
    }
    return got == 0;
}

int watch_event_scan(const char *line, size_t len, struct watch_event *ret, struct err *err)
{
    struct json_item type = {0}, object = {0};
    int shown = (int)(len < 80 ? len : 80);
    if (!find_members(line, len, &type, &object))
        return err_set(err, ERR_PROTO, "a line of the watch is not a JSON object: %.*s", shown, line);
    if (!event_type(&type, &ret->type))
        return err_set(err, ERR_PROTO, "an event of the watch has no known type: %.*s", shown, line);
    if (!object.len || object.text[0] != '{')
        return err_set(err, ERR_PROTO, "an event of the watch has no object: %.*s", shown, line);
    ret->object = object.text;
    ret->object_len = object.len;
    return 0;
}

bool watch_event_begins(const char *line, size_t len, struct watch_event *ret)
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
        if (len < n + 3 || memcmp(line, starts[i].text, n) != 0 || line[n] != '{')
            continue;
        *ret = (struct watch_event){starts[i].type, line + n, len - n};
        return true;
    }
    return false;
}

bool watch_event_guess(const char *line, size_t len, struct watch_event *ret)
{
    if (!len || line[len - 1] != '}' || !watch_event_begins(line, len, ret))
        return false;
    ret->object_len--;
    return true;
}

// A list is one JSON document, which may be too large to hold. This code follows only its outer frame: the members of
// the document and of its metadata, and the elements of items. It skips each value inside as a whole.
enum {
    LIST_MAX_TEXT = 16 * 1024, // of a resourceVersion or a continue token
    LIST_MAX_KEY = 64,         // no key that matters here is longer
};

// The part of the text that may come next in the open list or object.
enum expect {
    EXPECT_DOCUMENT,
    EXPECT_KEY_OR_END,
    EXPECT_KEY,
    EXPECT_COLON,
    EXPECT_VALUE,
    EXPECT_VALUE_OR_END,
    EXPECT_NEXT, // a comma or the end
    EXPECT_NOTHING,
};

enum frame { FRAME_TOP, FRAME_META, FRAME_ITEMS };

// The use of the bytes of the value that is being skipped.
enum capture { CAPTURE_NONE, CAPTURE_KEY, CAPTURE_TEXT, CAPTURE_ITEM };

struct list_splitter {
    enum expect expect;
    enum frame frame;
    enum capture capture;
    bool skipping;
    bool saw_items;
    struct json_skip skip;
    struct buf key;     // the last key, with its quotes
    struct buf item;    // the part of an item that earlier pieces brought
    struct buf version; // with its opening quote; a NUL replaces the closing one
    struct buf token;
    struct buf *text; // the buffer that CAPTURE_TEXT fills
};

struct list_splitter *list_splitter_new(size_t max_item)
{
    struct list_splitter *s = xcalloc(1, sizeof *s);
    s->key = BUF_INIT(LIST_MAX_KEY);
    s->item = BUF_INIT(max_item ? max_item : STREAM_MAX_OBJECT);
    s->version = BUF_INIT(LIST_MAX_TEXT);
    s->token = BUF_INIT(LIST_MAX_TEXT);
    return s;
}

void list_splitter_free(struct list_splitter *s)
{
    if (!s)
        return;
    buf_done(&s->key);
    buf_done(&s->item);
    buf_done(&s->version);
    buf_done(&s->token);
    free(s);
}

static int broken(struct err *err, const char *what)
{
    return err_set(err, ERR_PROTO, "the list is not in the API server's format: %s", what);
}

static bool key_is(const struct list_splitter *s, const char *quoted)
{
    return !s->key.over && strcmp(buf_str(&s->key), quoted) == 0;
}

static int skip_start(struct list_splitter *s, enum capture capture, char first, struct err *err)
{
    if (!json_skip_start(&s->skip, first))
        return broken(err, "a value is missing");
    s->skipping = true;
    s->capture = capture;
    if (capture == CAPTURE_KEY)
        buf_reset(&s->key);
    if (capture == CAPTURE_TEXT)
        buf_reset(s->text);
    return 0;
}

static int frame_open(struct list_splitter *s, enum frame frame, enum expect expect)
{
    s->frame = frame;
    s->expect = expect;
    return 1;
}

static int frame_close(struct list_splitter *s)
{
    s->expect = s->frame == FRAME_TOP ? EXPECT_NOTHING : EXPECT_NEXT;
    s->frame = FRAME_TOP;
    return 1;
}

static int value_step(struct list_splitter *s, char c, struct err *err)
{
    if (s->frame == FRAME_ITEMS)
        return c == '{' ? skip_start(s, CAPTURE_ITEM, c, err) : broken(err, "an item is not an object");
    if (s->frame == FRAME_META) {
        s->text = key_is(s, "\"resourceVersion\"") ? &s->version : key_is(s, "\"continue\"") ? &s->token : NULL;
        if (s->text && c != '"' && c != 'n')
            return broken(err, "metadata.resourceVersion or continue is not a string");
        return skip_start(s, s->text && c == '"' ? CAPTURE_TEXT : CAPTURE_NONE, c, err);
    }
    if (key_is(s, "\"items\"")) {
        s->saw_items = true;
        if (c != '[' && c != 'n')
            return broken(err, "items is not an array");
        return c == '[' ? frame_open(s, FRAME_ITEMS, EXPECT_VALUE_OR_END) : skip_start(s, CAPTURE_NONE, c, err);
    }
    if (key_is(s, "\"metadata\"") && c == '{')
        return frame_open(s, FRAME_META, EXPECT_KEY_OR_END);
    return skip_start(s, CAPTURE_NONE, c, err);
}

// Takes a byte of the frame that is not a blank. Returns 1 if it is used up, 0 if a value to skip begins with it.
static int frame_step(struct list_splitter *s, char c, struct err *err)
{
    char end = s->frame == FRAME_ITEMS ? ']' : '}';
    switch (s->expect) {
    case EXPECT_DOCUMENT:
        return c == '{' ? frame_open(s, FRAME_TOP, EXPECT_KEY_OR_END) : broken(err, "it is not a JSON object");
    case EXPECT_KEY_OR_END:
        if (c == end)
            return frame_close(s);
        // fall through
    case EXPECT_KEY:
        return c == '"' ? skip_start(s, CAPTURE_KEY, c, err) : broken(err, "a key is missing");
    case EXPECT_COLON:
        s->expect = EXPECT_VALUE;
        return c == ':' ? 1 : broken(err, "a colon is missing");
    case EXPECT_VALUE_OR_END:
        if (c == end)
            return frame_close(s);
        // fall through
    case EXPECT_VALUE:
        return value_step(s, c, err);
    case EXPECT_NEXT:
        if (c == end)
            return frame_close(s);
        s->expect = s->frame == FRAME_ITEMS ? EXPECT_VALUE : EXPECT_KEY;
        return c == ',' ? 1 : broken(err, "a comma is missing");
    case EXPECT_NOTHING:
        break;
    }
    return broken(err, "something follows its end");
}

static int item_take(struct list_splitter *s, const char *bytes, size_t n, bool ended, text_fn item, void *ctx,
                     struct err *err)
{
    if (n > s->item.cap - s->item.len) {
        s->capture = CAPTURE_NONE; // the rest of it
        return beginning_emit(&s->item, bytes, item, ctx, err);
    }
    if (ended && !s->item.len)
        return item(ctx, bytes, n, true, err); // whole items are not copied
    (void)buf_append(&s->item, bytes, n);
    return ended ? buf_emit(&s->item, s->item.len, true, item, ctx, err) : 0;
}

static int text_take(struct buf *text, const char *bytes, size_t n, bool ended, struct err *err)
{
    if (buf_append(text, bytes, n) < 0)
        return err_set(err, ERR_LIMIT, "a resourceVersion or continue token is longer than %zu bytes", text->cap);
    if (memchr(bytes, '\\', n)) // the API server never sends escapes here, so there is no decoder
        return broken(err, "an escape in metadata.resourceVersion or continue");
    if (ended)
        text->data[text->len - 1] = '\0';
    return 0;
}

static int value_take(struct list_splitter *s, const char *bytes, size_t n, bool ended, text_fn item, void *ctx,
                      struct err *err)
{
    switch (s->capture) {
    case CAPTURE_KEY:
        (void)buf_append(&s->key, bytes, n); // if it is too long, `over` says so
        return 0;
    case CAPTURE_TEXT:
        return text_take(s->text, bytes, n, ended, err);
    case CAPTURE_ITEM:
        return item_take(s, bytes, n, ended, item, ctx, err);
    case CAPTURE_NONE:
        break;
    }
    return 0;
}

int list_splitter_feed(struct list_splitter *s, const char *bytes, size_t n, text_fn item, void *ctx, struct err *err)
{
    while (n) {
        size_t used = 1;
        if (s->skipping) {
            bool ended;
            used = json_skip_feed(&s->skip, bytes, n, &ended);
            int r = value_take(s, bytes, used, ended, item, ctx, err);
            if (r < 0)
                return r;
            if (ended) {
                s->skipping = false;
                s->expect = s->capture == CAPTURE_KEY ? EXPECT_COLON : EXPECT_NEXT;
            }
        } else if (!json_is_space(*bytes)) {
            int r = frame_step(s, *bytes, err);
            if (r < 0)
                return r;
            used = (size_t)r;
        }
        bytes += used;
        n -= used;
    }
    return 0;
}

int list_splitter_end(const struct list_splitter *s, const char **ret_resource_version, const char **ret_continue,
                      struct err *err)
{
    if (s->expect != EXPECT_NOTHING)
        return err_set(err, ERR_PROTO, "the list ends in the middle");
    // An answer that is not a list must not count as an empty list. That would empty the mirror of the collection.
    if (!s->saw_items)
        return broken(err, "it has no items");
    if (s->version.len < 3)
        return broken(err, "it has no metadata.resourceVersion");
    *ret_resource_version = s->version.data + 1;
    *ret_continue = s->token.len ? s->token.data + 1 : "";
    return 0;
}
