// SPDX-License-Identifier: Apache-2.0
#include "common/base/json.h"

#include "common/base/fiber.h"
#include "common/base/json_scan.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <string.h>

enum { VALUE_UNITS = 64 }; // cost of a value, besides its bytes

struct parser {
    const char *begin, *p, *end;
    const char *const *prune;
    bool trusts;
    struct arena *arena;
    struct err *err;
    int depth, values;
    int most;  // depth of the tree; JSON_DEPTH_MAX + 1: as deep as the text
    bool nuls; // strings may have U+0000, names may not
};

static int fail(struct parser *ps, const char *what)
{
    return err_set(ps->err, ERR_INVALID, "not valid JSON at byte %zu: %s", (size_t)(ps->p - ps->begin), what);
}

static void skip_space(struct parser *ps)
{
    const char *stop;
    do {
        stop = fiber_step(ps->p, ps->end);
        while (ps->p < stop && json_is_space(*ps->p))
            ps->p++;
    } while (fiber_goes_on(ps->p, stop, ps->end));
}

static int hex4(const char *p, const char *end, unsigned *ret)
{
    if (end - p < 4)
        return -1;
    unsigned v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                : 16;
        if (digit > 15)
            return -1;
        v = v << 4 | digit;
    }
    *ret = v;
    return 0;
}

// The code point of the \u escape (or pair of them) at p, which points after the first 'u'. Moves p after the escape.
static int scan_code_point(const char **p, const char *end, unsigned *ret)
{
    unsigned hi, lo;
    if (hex4(*p, end, &hi) < 0)
        return -1;
    *p += 4;
    *ret = hi;
    if (hi < 0xd800 || hi > 0xdfff)
        return 0;
    if (hi > 0xdbff || end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u' || hex4(*p + 2, end, &lo) < 0 || lo < 0xdc00 ||
        lo > 0xdfff)
        return -1;
    *p += 6;
    *ret = 0x10000 + ((hi - 0xd800) << 10) + (lo - 0xdc00);
    return 0;
}

static int parse_escape(struct parser *ps)
{
    ps->p++;
    if (ps->p == ps->end)
        return fail(ps, "unterminated string");
    char c = *ps->p++;
    unsigned code;
    if (c == 'u')
        return scan_code_point(&ps->p, ps->end, &code) < 0 || (!code && !ps->nuls) ? fail(ps, "bad \\u escape") : 0;
    return c && strchr("\"\\/bfnrt", c) ? 0 : fail(ps, "bad escape");
}

// Moves after the closing quote.
static int parse_string(struct parser *ps, const char **ret_text, uint32_t *ret_len, bool *ret_escaped)
{
    const char *open = ps->p++, *rest = ps->p; // the start of the bytes that fiber_spend() has not counted yet
    *ret_escaped = false;
    for (;;) {
        const char *stop = fiber_step(ps->p, ps->end);
        ps->p = json_plain_end(ps->p, stop);
        if (ps->p - rest >= FIBER_STEP) {
            fiber_spend((size_t)(ps->p - rest));
            rest = ps->p;
        }
        if (ps->p == ps->end)
            return fail(ps, "unterminated string");
        if (ps->p == stop)
            continue;
        unsigned char c = (unsigned char)*ps->p;
        if (c == '"')
            break;
        if (c < 0x20)
            return fail(ps, "control character in a string");
        if (c == '\\') {
            *ret_escaped = true;
            int r = parse_escape(ps);
            if (r < 0)
                return r;
        } else if (c >= 0x80) {
            const char *run = ps->p;
            stop = fiber_step(run, ps->end);
            while (ps->p < stop && (unsigned char)*ps->p >= 0x80)
                ps->p++;
            for (int i = 0; i < 3 && ps->p == stop && stop < ps->end && ((unsigned char)*stop & 0xc0) == 0x80; i++)
                stop = ++ps->p; // not in the middle of a character
            if (!str_utf8_valid(run, (size_t)(ps->p - run)))
                return fail(ps, "not UTF-8");
        }
    }
    ps->p++;
    fiber_spend((size_t)(ps->p - rest));
    *ret_text = open;
    *ret_len = (uint32_t)(ps->p - open);
    return 0;
}

static bool parse_digits(struct parser *ps)
{
    const char *from = ps->p, *stop;
    do {
        stop = fiber_step(ps->p, ps->end);
        while (ps->p < stop && *ps->p >= '0' && *ps->p <= '9')
            ps->p++;
    } while (fiber_goes_on(ps->p, stop, ps->end));
    return ps->p > from;
}

static bool take(struct parser *ps, char c)
{
    if (ps->p == ps->end || *ps->p != c)
        return false;
    ps->p++;
    return true;
}

static int parse_number(struct parser *ps)
{
    take(ps, '-');
    if (!take(ps, '0') && !parse_digits(ps))
        return fail(ps, "expected a value");
    if (take(ps, '.') && !parse_digits(ps))
        return fail(ps, "bad number");
    if (take(ps, 'e') || take(ps, 'E')) {
        if (!take(ps, '+'))
            take(ps, '-');
        if (!parse_digits(ps))
            return fail(ps, "bad number");
    }
    return 0;
}

static int parse_word(struct parser *ps, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, word, n) != 0)
        return fail(ps, "expected a value");
    ps->p += n;
    return 0;
}

static bool pruned(struct parser *ps, const struct json *v)
{
    skip_space(ps);
    if (!v->key || ps->p == ps->end || (*ps->p != '{' && *ps->p != '['))
        return false;
    for (const char *const *name = ps->prune; name && *name; name++)
        if (json_key_is(v, *name))
            return true;
    return false;
}

static size_t unescape(const char *p, const char *end, char *out)
{
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
        unsigned code = 0;
        switch (c) {
        case 'b':
            *o++ = '\b';
            break;
        case 'f':
            *o++ = '\f';
            break;
        case 'n':
            *o++ = '\n';
            break;
        case 'r':
            *o++ = '\r';
            break;
        case 't':
            *o++ = '\t';
            break;
        case 'u':
            scan_code_point(&p, end, &code);
            if (code < 0x80) {
                *o++ = (char)code;
            } else if (code < 0x800) {
                *o++ = (char)(0xc0 | code >> 6);
                *o++ = (char)(0x80 | (code & 0x3f));
            } else if (code < 0x10000) {
                *o++ = (char)(0xe0 | code >> 12);
                *o++ = (char)(0x80 | (code >> 6 & 0x3f));
                *o++ = (char)(0x80 | (code & 0x3f));
            } else {
                *o++ = (char)(0xf0 | code >> 18);
                *o++ = (char)(0x80 | (code >> 12 & 0x3f));
                *o++ = (char)(0x80 | (code >> 6 & 0x3f));
                *o++ = (char)(0x80 | (code & 0x3f));
            }
            break;
        default:
            *o++ = c;
        }
    }
    return (size_t)(o - out);
}

// Moves after the colon.
static int parse_name(struct parser *ps, const char **ret_text, uint32_t *ret_len, bool *ret_escaped)
{
    skip_space(ps);
    if (ps->p == ps->end || *ps->p != '"')
        return fail(ps, "expected the name of a member");
    bool nuls = ps->nuls;
    ps->nuls = false;
    int r = parse_string(ps, ret_text, ret_len, ret_escaped);
    ps->nuls = nuls;
    if (r < 0)
        return r;
    skip_space(ps);
    return take(ps, ':') ? 0 : fail(ps, "expected ':'");
}

static int parse_key(struct parser *ps, struct json *v)
{
    bool escaped;
    int r = parse_name(ps, &v->key, &v->key_len, &escaped);
    if (r < 0)
        return r;
    v->key++;
    v->key_len -= 2;
    if (escaped) {
        char *key = arena_alloc(ps->arena, v->key_len + 1);
        v->key_len = (uint32_t)unescape(v->key, v->key + v->key_len, key);
        v->key = key;
    }
    return 0;
}

static struct json *new_value(struct parser *ps)
{
    return ps->values++ < JSON_VALUES_MAX ? arena_new(ps->arena, struct json) : NULL;
}

static int children_open(struct parser *ps, char close, bool *ret_any)
{
    ps->p++;
    if (++ps->depth > JSON_DEPTH_MAX)
        return err_set(ps->err, ERR_LIMIT, "JSON is nested deeper than %d levels", JSON_DEPTH_MAX);
    skip_space(ps);
    *ret_any = ps->p == ps->end || *ps->p != close;
    return 0;
}

// After a value: whether another one follows.
static bool children_next(struct parser *ps)
{
    skip_space(ps);
    return take(ps, ',');
}

static int children_close(struct parser *ps, char close)
{
    ps->depth--;
    return take(ps, close) ? 0 : fail(ps, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
}

static int parse_value(struct parser *ps, struct json *v, bool keep);

static int skip_children(struct parser *ps)
{
    bool ended;
    struct json_skip skip;
    json_skip_start(&skip, *ps->p);
    size_t n = json_skip_feed(&skip, ps->p, (size_t)(ps->end - ps->p), &ended);
    if (!ended)
        return fail(ps, "the text ends before the value that begins there");
    ps->p += n;
    return 0;
}

// Checks members or items that stay out of the tree.
static int check_children(struct parser *ps, char close)
{
    if (ps->trusts)
        return skip_children(ps);
    struct json unused;
    const char *text;
    uint32_t len;
    bool any = false, escaped;
    int r = children_open(ps, close, &any);
    while (r == 0 && any) {
        r = close == '}' ? parse_name(ps, &text, &len, &escaped) : 0;
        if (r == 0)
            r = parse_value(ps, &unused, false);
        any = r == 0 && children_next(ps);
    }
    return r < 0 ? r : children_close(ps, close);
}

// Members or items up to `close`.
static int parse_children(struct parser *ps, struct json *v, char close)
{
    struct json **tail = &v->child;
    bool any = false;
    int r = children_open(ps, close, &any);
    while (r == 0 && any) {
        struct json *child = new_value(ps);
        if (!child)
            return err_set(ps->err, ERR_LIMIT, "JSON of more than %d values", JSON_VALUES_MAX);
        r = close == '}' ? parse_key(ps, child) : 0;
        if (r == 0)
            r = parse_value(ps, child, !pruned(ps, child));
        *tail = child;
        tail = &child->next;
        any = r == 0 && children_next(ps);
    }
    return r < 0 ? r : children_close(ps, close);
}

// Without `keep`, no child of the value gets into the tree.
static int parse_value(struct parser *ps, struct json *v, bool keep)
{
    skip_space(ps);
    if (ps->p == ps->end)
        return fail(ps, "unexpected end");
    const char *from = ps->p;
    int r;
    fiber_spend(VALUE_UNITS);
    switch (*ps->p) {
    case '"':
        v->type = JSON_STRING;
        return parse_string(ps, &v->text, &v->len, &v->escaped);
    case '{':
        v->type = JSON_OBJECT;
        r = keep && ps->depth < ps->most ? parse_children(ps, v, '}') : check_children(ps, '}');
        break;
    case '[':
        v->type = JSON_LIST;
        r = keep && ps->depth < ps->most ? parse_children(ps, v, ']') : check_children(ps, ']');
        break;
    case 't':
        v->type = JSON_BOOL;
        r = parse_word(ps, "true");
        break;
    case 'f':
        v->type = JSON_BOOL;
        r = parse_word(ps, "false");
        break;
    case 'n':
        v->type = JSON_NULL;
        r = parse_word(ps, "null");
        break;
    default:
        v->type = JSON_NUMBER;
        r = parse_number(ps);
    }
    v->text = from;
    v->len = (uint32_t)(ps->p - from);
    return r;
}

static int parse(struct parser *ps, const char *text, size_t len, struct json **ret)
{
    if (len > JSON_LEN_MAX)
        return err_set(ps->err, ERR_LIMIT, "the JSON has %zu bytes; the limit is %d", len, JSON_LEN_MAX);
    ps->begin = ps->p = text;
    ps->end = text + len;
    struct json *root = arena_new(ps->arena, struct json);
    int r = parse_value(ps, root, true);
    if (r < 0)
        return r;
    skip_space(ps);
    if (ps->p != ps->end)
        return fail(ps, "text follows the end of the document");
    *ret = root;
    return 0;
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

int json_parse_values(const char *text, size_t len, int depth, struct arena *a, struct json **ret, struct err *err)
{
    struct parser ps = {.most = depth, .nuls = true, .arena = a, .err = err};
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
    // Most names differ in the first byte already. A key holds no NUL, so strncmp() stops at the end of the name.
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
