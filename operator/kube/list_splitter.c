// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/list_splitter.h"

#include "common/base/json_scan.h"
#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

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
    struct buf key; // the last key, with its quotes
    struct partial_text item;
    struct buf version; // with its opening quote; a NUL replaces the closing one
    struct buf token;
    struct buf *text; // the buffer that CAPTURE_TEXT fills
};

struct list_splitter *list_splitter_new(size_t max_item)
{
    struct list_splitter *s = xcalloc(1, sizeof *s);
    s->key = BUF_INIT(LIST_MAX_KEY);
    partial_text_init(&s->item, max_item);
    s->version = BUF_INIT(LIST_MAX_TEXT);
    s->token = BUF_INIT(LIST_MAX_TEXT);
    return s;
}

void list_splitter_free(struct list_splitter *s)
{
    if (!s)
        return;
    buf_done(&s->key);
    partial_text_done(&s->item);
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
        return partial_text_take(&s->item, bytes, n, ended, item, ctx, err);
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
