// SPDX-License-Identifier: Apache-2.0
#include "common/base/json.h"

#include "common/base/fiber.h"
#include "common/base/json_scan.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <string.h>

enum { VALUE_UNITS = 64 }; // cost of a value, besides its bytes

struct open {               // a list or an object that has not ended yet
    struct json *v, **tail; // `tail`: where its next child belongs
};

struct parser {
    const char *begin, *p, *end;
    const char *stop; // the end of the step that is being read
    const char *const *prune;
    bool trusts;
    struct arena *arena;
    struct err *err;
    int values, values_max, most; // in the tree, and its depth
    struct json_grammar grammar;
    struct open *open; // the lists and objects around the place, by their depth
};

// The number that four hexadecimal digits make. The grammar has accepted them.
static unsigned code_unit(const char *p)
{
    unsigned v = 0;
    for (int i = 0; i < 4; i++)
        v = v << 4 | (unsigned)(p[i] <= '9' ? p[i] - '0' : (p[i] & 0x5f) - 'A' + 10);
    return v;
}

// Writes the character of a \u escape, or of a pair of them, in UTF-8. *p is at the byte after the first 'u', and moves
// to the byte after the escape. Returns the byte after the character.
static char *put_code_point(const char **p, char *o)
{
    unsigned code = code_unit(*p);
    *p += 4;
    if (code >= 0xd800 && code < 0xdc00) {
        code = 0x10000 + ((code - 0xd800) << 10) + (code_unit(*p + 2) - 0xdc00);
        *p += 6;
    }
    int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3; // bytes after the first
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    *o++ = (char)(first[more] | code >> 6 * more);
    while (more-- > 0)
        *o++ = (char)(0x80 | (code >> 6 * more & 0x3f));
    return o;
}

// Writes the text of a string without its escapes, and returns the length. The grammar has accepted the string.
static size_t unescape(const char *p, const char *end, char *out)
{
    static const char meant[256] = {['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
    char *o = out;
    for (const char *rest = p; p < end;) {
        if (p - rest >= FIBER_STEP) {
            fiber_spend((size_t)(p - rest));
            rest = p;
        }
        if (*p != '\\') {
            *o++ = *p++;
            continue;
        }
        char c = p[1];
        p += 2;
        if (c == 'u')
            o = put_code_point(&p, o);
        else
            *o++ = meant[(unsigned char)c] ? meant[(unsigned char)c] : c;
    }
    return (size_t)(o - out);
}

static int fail(struct parser *ps, bool ended)
{
    return json_grammar_fault(&ps->grammar, (size_t)(ps->p - ps->begin), ended, ps->err);
}

static enum json_token next_token(struct parser *ps)
{
    enum json_token t;
    while ((t = json_grammar_next(&ps->grammar, &ps->p, ps->stop)) == JSON_MORE && ps->stop < ps->end) {
        fiber_spend(FIBER_STEP);
        ps->stop = fiber_step(ps->p, ps->end);
    }
    if (t == JSON_OPEN || t == JSON_SCALAR)
        fiber_spend(VALUE_UNITS);
    return t;
}

// Adds a value to the list or object that is open at that depth. Returns NULL if the tree has as many as it may have.
static struct json *add_child(struct parser *ps, int depth)
{
    if (ps->values++ == ps->values_max) {
        err_set(ps->err, ERR_LIMIT, "JSON of more than %d values", ps->values_max);
        return NULL;
    }
    struct json *v = arena_new(ps->arena, struct json);
    *ps->open[depth].tail = v;
    ps->open[depth].tail = &v->next;
    return v;
}

static void set_key(struct parser *ps, struct json *v)
{
    v->key_len = (uint32_t)ps->grammar.len - 2;
    v->key = ps->p - 1 - v->key_len;
    if (ps->grammar.escaped) {
        char *key = arena_alloc(ps->arena, v->key_len + 1);
        v->key_len = (uint32_t)unescape(v->key, v->key + v->key_len, key);
        v->key = key;
    }
}

static void set_scalar(struct parser *ps, struct json *v)
{
    v->type = ps->grammar.type;
    v->escaped = v->type == JSON_STRING && ps->grammar.escaped;
    v->len = (uint32_t)ps->grammar.len;
    v->text = ps->p - v->len;
}

static bool pruned(const struct parser *ps, const struct json *v)
{
    if (ps->grammar.depth > ps->most)
        return true;
    for (const char *const *name = v->key ? ps->prune : NULL; name && *name; name++)
        if (json_key_is(v, *name))
            return true;
    return false;
}

// Skips the list or object that has just begun. Does not check its contents.
static int skip_children(struct parser *ps)
{
    bool ended;
    struct json_skip skip;
    ps->p--;
    json_skip_start(&skip, *ps->p);
    size_t n = json_skip_feed(&skip, ps->p, (size_t)(ps->end - ps->p), &ended);
    if (!ended)
        return err_set(ps->err, ERR_INVALID,
                       "not valid JSON at byte %zu: the text ends before the value that begins there",
                       (size_t)(ps->p - ps->begin));
    ps->p += n;
    ps->stop = fiber_step(ps->p, ps->end);
    json_grammar_leave(&ps->grammar);
    return 0;
}

// Checks the contents of the list or object that has just begun. They do not get into the tree.
static int check_children(struct parser *ps)
{
    enum json_token t = JSON_OPEN;
    for (int depth = ps->grammar.depth; ps->grammar.depth >= depth && t > JSON_WRONG;)
        t = next_token(ps);
    return t > JSON_WRONG ? 0 : fail(ps, t == JSON_MORE);
}

static int open_value(struct parser *ps, struct json *v)
{
    int r = 0;
    v->type = ps->grammar.type;
    v->text = ps->p - 1;
    if (!pruned(ps, v))
        ps->open[ps->grammar.depth] = (struct open){v, &v->child};
    else if ((r = ps->trusts ? skip_children(ps) : check_children(ps)) == 0)
        v->len = (uint32_t)(ps->p - v->text);
    return r;
}

static int parse_values(struct parser *ps, struct json *root)
{
    struct json *v = root; // the value that comes next; NULL if it has no place in the tree yet
    enum json_token t;
    int r = 0;
    while (r == 0 && (t = next_token(ps)) > JSON_WRONG) {
        if (t == JSON_CLOSE) {
            const struct open *o = &ps->open[ps->grammar.depth + 1];
            o->v->len = (uint32_t)(ps->p - o->v->text);
        } else if (!v && !(v = add_child(ps, t == JSON_OPEN ? ps->grammar.depth - 1 : ps->grammar.depth))) {
            r = ERR_LIMIT;
        } else if (t == JSON_NAME) {
            set_key(ps, v);
        } else {
            if (t == JSON_OPEN)
                r = open_value(ps, v);
            else
                set_scalar(ps, v);
            v = NULL;
        }
    }
    if (r == 0 && (t == JSON_WRONG || !json_grammar_ends(&ps->grammar)))
        return fail(ps, t == JSON_MORE);
    if (r == 0 && v) // a number is the whole document
        set_scalar(ps, v);
    return r;
}

static int parse(struct parser *ps, const char *text, size_t len, struct json **ret)
{
    struct open open[JSON_DEPTH_MAX + 1];
    if (len > JSON_LEN_MAX)
        return err_set(ps->err, ERR_LIMIT, "the JSON has %zu bytes; the limit is %d", len, JSON_LEN_MAX);
    ps->begin = ps->p = text;
    ps->end = text + len;
    ps->stop = fiber_step(text, ps->end);
    ps->open = open;
    ps->values_max = ps->values_max ? ps->values_max : JSON_VALUES_MAX;
    struct json *root = arena_new(ps->arena, struct json);
    int r = parse_values(ps, root);
    fiber_spend(len % FIBER_STEP);
    if (r == 0)
        *ret = root;
    return r;
}

int json_parse(const char *text, size_t len, const char *const *prune, struct arena *a, struct json **ret,
               struct err *err)
{
    struct parser ps = {.prune = prune, .most = JSON_DEPTH_MAX + 1, .arena = a, .err = err};
    return parse(&ps, text, len, ret);
}

int json_parse_trusted(const char *text, size_t len, const char *const *prune, struct arena *a, struct json **ret,
                       struct err *err)
{
    struct parser ps = {.prune = prune, .most = JSON_DEPTH_MAX + 1, .trusts = true, .arena = a, .err = err};
    return parse(&ps, text, len, ret);
}

int json_parse_stored(const char *text, size_t len, const char *const *prune, struct arena *a, struct json **ret,
                      struct err *err)
{
    struct parser ps = {.prune = prune,
                        .most = JSON_DEPTH_MAX + 1,
                        .values_max = JSON_STORED_VALUES_MAX,
                        .trusts = true,
                        .arena = a,
                        .err = err};
    return parse(&ps, text, len, ret);
}

int json_parse_values(const char *text, size_t len, int depth, struct arena *a, struct json **ret, struct err *err)
{
    struct parser ps = {.most = depth, .grammar = {.nuls = true}, .arena = a, .err = err};
    return parse(&ps, text, len, ret);
}

size_t json_count(const struct json *v)
{
    size_t n = 0;
    JSON_FOREACH(item, v)
        n++;
    return n;
}

bool json_key_is(const struct json *v, const char *name)
{
    // Most names differ in the first byte already. A key contains no NUL, so strncmp() stops at the end of the name.
    return v->key && v->key_len && *v->key == *name && strncmp(v->key, name, v->key_len) == 0 && !name[v->key_len];
}

const struct json *json_get(const struct json *v, const char *name)
{
    if (!v || v->type != JSON_OBJECT)
        return NULL;
    JSON_FOREACH(item, v)
        if (json_key_is(item, name))
            return item->type == JSON_NULL ? NULL : item;
    return NULL;
}

bool json_str_is(const struct json *v, const char *s)
{
    if (!v || v->type != JSON_STRING)
        return false;
    if (!v->escaped)
        return v->len - 2 == strlen(s) && memcmp(v->text + 1, s, v->len - 2) == 0;
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    return str_eq(json_str(v, &a), s);
}

bool json_is_true(const struct json *v)
{
    return v && v->type == JSON_BOOL && *v->text == 't';
}

bool json_is_false(const struct json *v)
{
    return v && v->type == JSON_BOOL && *v->text == 'f';
}

char *json_str(const struct json *v, struct arena *a)
{
    size_t len;
    return json_text(v, a, &len);
}

char *json_text(const struct json *v, struct arena *a, size_t *ret_len)
{
    *ret_len = 0;
    if (!v || v->type != JSON_STRING)
        return NULL;
    *ret_len = v->len - 2;
    if (!v->escaped)
        return arena_strndup(a, v->text + 1, v->len - 2);
    char *s = arena_alloc(a, v->len);
    *ret_len = unescape(v->text + 1, v->text + v->len - 1, s);
    s[*ret_len] = '\0';
    return s;
}

bool json_i64(const struct json *v, int64_t *ret)
{
    char digits[24];
    if (!v || v->type != JSON_NUMBER || v->len >= sizeof digits)
        return false;
    memcpy(digits, v->text, v->len);
    digits[v->len] = '\0';
    return str_to_i64(digits, ret);
}

const struct json *json_read(const char *text, size_t len, struct arena *a)
{
    struct err ignored = ERR_INIT;
    struct json *root = NULL;
    return json_parse(text, len, NULL, a, &root, &ignored) == 0 ? root : NULL;
}

const char *json_type_name(enum json_type t)
{
    static const char *const names[] = {"null", "boolean", "number", "string", "list", "object"};
    return names[t];
}
