// SPDX-License-Identifier: Apache-2.0
// A text that may be JSON. The reader and the check use one grammar: they accept the same texts, in whatever parts the
// text comes, and the reader's values are where the check's tokens are.
#include "common/base/json_check.h"
#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 2 * JSON_VALUES_MAX }; // no text of this length has too many values for the reader

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

// Feeds the text in parts of `part` bytes. Returns whether it is JSON.
static bool check(const char *text, size_t len, size_t part, struct json_check *ret)
{
    *ret = (struct json_check){0};
    for (size_t n; len > 0; text += n, len -= n) {
        n = MIN(part, len);
        _cleanup_(free_p) char *copy = xmalloc(n); // of just that size, so that a read behind it is seen
        memcpy(copy, text, n);
        if (!json_check_feed(ret, copy, n))
            return false;
    }
    return json_check_ends(ret);
}

static size_t count(const struct json *v)
{
    size_t n = 1;
    JSON_FOREACH(item, v)
        n += count(item);
    return n;
}

// Counts the values by their tokens.
static size_t count_values(const char *text, size_t len, size_t part, bool nuls)
{
    struct json_grammar g = {.nuls = nuls};
    size_t n = 0;
    for (const char *end = text; len > 0;) {
        const char *p = end;
        enum json_token t;
        end += MIN(part, len);
        len -= (size_t)(end - p);
        while ((t = json_grammar_next(&g, &p, end)) > JSON_WRONG)
            n += t == JSON_SCALAR || t == JSON_OPEN;
        must(t == JSON_MORE && p == end);
    }
    must(json_grammar_ends(&g));
    return n ? n : 1; // a number is the whole document
}

static void read_values(const char *text, size_t len, const struct json *root, struct arena *a)
{
    struct err err = ERR_INIT;
    struct json *values;
    must(json_parse_values(text, len, JSON_DEPTH_MAX + 1, a, &values, &err) == 0 && count(values) == count(root));
    for (size_t part = 1; part <= 3; part++)
        must(count_values(text, len, part, false) == count(root) && count_values(text, len, part, true) == count(root));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *root;
    struct json_check whole, parts;
    if (size >= TEXT_MAX)
        return 0;
    _cleanup_(free_p) char *text = xmalloc(size); // likewise
    if (size)
        memcpy(text, data, size);
    int r = json_parse(text, size, NULL, &a, &root, &err);
    must(check(text, size, MAX(size, (size_t)1), &whole) == (r == 0));
    for (size_t part = 1; part <= 3; part++) {
        must(check(text, size, part, &parts) == (r == 0));
        must(parts.at == whole.at && parts.longs_n == whole.longs_n);
        for (unsigned i = 0; i < MIN(whole.longs_n, (unsigned)JSON_LONGS_MAX); i++)
            must(parts.longs[i].at == whole.longs[i].at && parts.longs[i].len == whole.longs[i].len);
    }
    if (r == 0)
        read_values(text, size, root, &a);
    else
        must((r == ERR_INVALID || r == ERR_LIMIT) && err.code == r && err.msg[0]);
    arena_done(&a);
    return 0;
}
