// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_check.h"

#include "common/base/mem.h"

// True if the current value is only inside objects, so that it has a name.
static bool has_name(const struct json_grammar *g)
{
    return g->depth && !(g->lists[0] & (((uint64_t)1 << g->depth) - 1));
}

static void note(struct json_check *s, size_t at, size_t len)
{
    if (len < JSON_LONG || !has_name(&s->grammar))
        return;
    if (s->longs_n < JSON_LONGS_MAX)
        s->longs[s->longs_n] = (struct json_long){at, len, s->grammar.depth};
    s->longs_n++;
}

// Call it for each token. `end` is the offset after the token.
static void note_token(struct json_check *s, enum json_token t, size_t end)
{
    const struct json_grammar *g = &s->grammar;
    if (t == JSON_OPEN && g->depth <= ARRAY_LEN(s->begins))
        s->begins[g->depth - 1] = end - 1;
    else if (t == JSON_CLOSE && g->depth < ARRAY_LEN(s->begins))
        note(s, s->begins[g->depth], end - s->begins[g->depth]);
    else if (t == JSON_SCALAR && g->type == JSON_STRING && g->depth < ARRAY_LEN(s->begins))
        note(s, end - g->len, g->len);
}

bool json_check_feed(struct json_check *s, const char *bytes, size_t n)
{
    const char *p = bytes;
    size_t from = s->at;
    enum json_token t;
    while ((t = json_grammar_next(&s->grammar, &p, bytes + n)) > JSON_WRONG)
        note_token(s, t, from + (size_t)(p - bytes));
    s->at = from + (size_t)(p - bytes);
    return t == JSON_MORE;
}

bool json_check_ends(const struct json_check *s)
{
    return json_grammar_ends(&s->grammar);
}
