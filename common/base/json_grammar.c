// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_grammar.h"

#include "common/base/json_scan.h"
#include "common/base/str.h"

#include <string.h>

enum state {
    VALUE,
    VALUE_OR_END, // in a list that has just begun
    NAME,
    NAME_OR_END, // in an object that has just begun
    COLON,
    BEHIND,   // after a value
    TOO_DEEP, // before a bracket that exceeds JSON_DEPTH_MAX
    STRING,
    CHARACTER, // in a character that the end of a part splits
    ESCAPE,    // after a backslash
    WORD,
    NUMBER, // before its first byte
    MINUS,
    ZERO,
    DIGITS,
    POINT,
    FRACTION,
    EXPONENT,
    SIGN,
    POWER,
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Strings

static int hex_digit(char c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Takes a byte of \uXXXX, or of the pair \uXXXX\uXXXX for a character above U+FFFF.
static bool take_unicode(struct json_grammar *g, char c)
{
    enum { U, LAST = 4, SECOND, SECOND_U, SECOND_LAST = 10 }; // the bytes after the first backslash
    int at = g->n_escape++, digit = hex_digit(c);
    if (at == U || at == SECOND_U)
        return c == 'u';
    if (at == SECOND)
        return c == '\\';
    if (digit < 0)
        return false;
    g->code = (uint16_t)(g->code << 4 | digit); // keeps the last four digits
    if (at != LAST && at != SECOND_LAST)
        return true;
    bool high = g->code >= 0xd800 && g->code < 0xdc00, low = g->code >= 0xdc00 && g->code < 0xe000;
    bool right = at == SECOND_LAST ? low : !low && (g->code || (g->nuls && !g->name));
    if (right && (at == SECOND_LAST || !high))
        g->state = STRING;
    return right;
}

static bool take_escape(struct json_grammar *g, char c)
{
    static const bool letters[256] = {['"'] = true, ['\\'] = true, ['/'] = true, ['b'] = true,
                                      ['f'] = true, ['n'] = true,  ['r'] = true, ['t'] = true};
    if (g->n_escape || c == 'u')
        return take_unicode(g, c);
    if (letters[(unsigned char)c])
        g->state = STRING;
    return letters[(unsigned char)c];
}

static bool take_character(struct json_grammar *g, char c)
{
    g->state = CHARACTER;
    if (!utf8_feed(&g->utf8, &c, 1))
        return false;
    if (utf8_complete(&g->utf8))
        g->state = STRING;
    return true;
}

// Takes a byte that is not plain. Returns false if it is wrong.
static bool take_special(struct json_grammar *g, char c)
{
    if (g->state == ESCAPE)
        return take_escape(g, c);
    if (g->state == CHARACTER || (signed char)c < 0)
        return take_character(g, c);
    if (c == '\\') {
        g->escaped = true;
        g->n_escape = 0;
        g->state = ESCAPE;
    }
    return (unsigned char)c >= 0x20;
}

static enum json_token read_string(struct json_grammar *g, const char **at, const char *end)
{
    const char *p = *at;
    enum json_token t = JSON_MORE;
    while (t == JSON_MORE) {
        if (g->state == STRING) {
            p = json_plain_end(p, end);
            for (size_t n; p < end && (signed char)*p < 0 && (n = str_utf8_len(p, (size_t)(end - p))) > 0;)
                p += n;
        }
        if (p == end)
            break;
        if (g->state == STRING && *p == '"') {
            g->state = g->name ? COLON : BEHIND;
            t = g->name ? JSON_NAME : JSON_SCALAR;
        } else if (!take_special(g, *p)) {
            t = JSON_WRONG;
        }
        p += t != JSON_WRONG;
    }
    g->len += (size_t)(p - *at);
    *at = p;
    return t;
}

// Numbers and words

static enum json_token read_word(struct json_grammar *g, const char **at, const char *end)
{
    const char *p = *at;
    while (p < end && *g->word && *p == *g->word) {
        p++;
        g->word++;
    }
    g->len += (size_t)(p - *at);
    *at = p;
    if (*g->word)
        return p == end ? JSON_MORE : JSON_WRONG;
    g->state = BEHIND;
    return JSON_SCALAR;
}

static bool number_may_end(enum state state)
{
    return state == ZERO || state == DIGITS || state == FRACTION || state == POWER;
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

static const char *enter(enum state *s, enum state part, const char *p)
{
    *s = part;
    return p + 1;
}

// The rules are in the order of the parts of a number. If the bytes ended inside the number, its state says which rule
// is next.
static enum json_token read_number(struct json_grammar *g, const char **at, const char *end)
{
    const char *p = *at;
    enum state s = g->state;
    if (s == NUMBER && p < end && *p == '-')
        p = enter(&s, MINUS, p);
    if ((s == NUMBER || s == MINUS) && p < end && is_digit(*p))
        p = enter(&s, *p == '0' ? ZERO : DIGITS, p);
    if (s == DIGITS)
        p = skip_digits(p, end);
    if ((s == ZERO || s == DIGITS) && p < end && *p == '.')
        p = enter(&s, POINT, p);
    if (s == POINT && p < end && is_digit(*p))
        p = enter(&s, FRACTION, p);
    if (s == FRACTION)
        p = skip_digits(p, end);
    if ((s == ZERO || s == DIGITS || s == FRACTION) && p < end && (*p == 'e' || *p == 'E'))
        p = enter(&s, EXPONENT, p);
    if (s == EXPONENT && p < end && (*p == '+' || *p == '-'))
        p = enter(&s, SIGN, p);
    if ((s == EXPONENT || s == SIGN) && p < end && is_digit(*p))
        p = enter(&s, POWER, p);
    if (s == POWER)
        p = skip_digits(p, end);
    bool ends = p < end && number_may_end(s);
    g->len += (size_t)(p - *at);
    g->state = ends ? BEHIND : s;
    *at = p;
    return ends ? JSON_SCALAR : p == end ? JSON_MORE : JSON_WRONG;
}

// Between tokens

static bool in_list(const struct json_grammar *g)
{
    return g->lists[(g->depth - 1) / 64] >> (g->depth - 1) % 64 & 1;
}

static enum json_token open_bracket(struct json_grammar *g, const char **at)
{
    bool list = **at == '[';
    if (g->depth == JSON_DEPTH_MAX) {
        g->state = TOO_DEEP;
        return JSON_WRONG;
    }
    uint64_t bit = (uint64_t)1 << g->depth % 64, *word = &g->lists[g->depth / 64];
    *word = list ? *word | bit : *word & ~bit;
    g->depth++;
    g->type = list ? JSON_LIST : JSON_OBJECT;
    g->state = list ? VALUE_OR_END : NAME_OR_END;
    ++*at;
    return JSON_OPEN;
}

void json_grammar_leave(struct json_grammar *g)
{
    g->depth--;
    g->state = BEHIND;
}

static enum json_token close_bracket(struct json_grammar *g, const char **at)
{
    json_grammar_leave(g);
    ++*at;
    return JSON_CLOSE;
}

// Skips blanks. Returns false if no other byte follows.
static bool at_mark(const char **at, const char *end)
{
    const char *p = *at;
    while (p < end && json_is_space(*p))
        p++;
    *at = p;
    return p < end;
}

static void begin(struct json_grammar *g, enum json_type type, enum state state)
{
    g->type = type;
    g->state = (uint8_t)state;
    g->len = 0;
}

static enum json_token begin_string(struct json_grammar *g, bool name, const char **at, const char *end)
{
    begin(g, JSON_STRING, STRING);
    g->name = name;
    g->escaped = false;
    g->len = 1;
    ++*at;
    return read_string(g, at, end);
}

static enum json_token begin_word(struct json_grammar *g, enum json_type type, const char *word, const char **at,
                                  const char *end)
{
    begin(g, type, WORD);
    g->word = word;
    return read_word(g, at, end);
}

static enum json_token read_value(struct json_grammar *g, const char **at, const char *end)
{
    if (!at_mark(at, end))
        return JSON_MORE;
    switch (**at) {
    case '"':
        return begin_string(g, false, at, end);
    case '[':
    case '{':
        return open_bracket(g, at);
    case 't':
        return begin_word(g, JSON_BOOL, "true", at, end);
    case 'f':
        return begin_word(g, JSON_BOOL, "false", at, end);
    case 'n':
        return begin_word(g, JSON_NULL, "null", at, end);
    default:
        begin(g, JSON_NUMBER, NUMBER);
        return read_number(g, at, end);
    }
}

static enum json_token read_name(struct json_grammar *g, const char **at, const char *end)
{
    if (!at_mark(at, end))
        return JSON_MORE;
    return **at == '"' ? begin_string(g, true, at, end) : JSON_WRONG;
}

static enum json_token read_after_bracket(struct json_grammar *g, const char **at, const char *end)
{
    bool list = g->state == VALUE_OR_END;
    if (!at_mark(at, end))
        return JSON_MORE;
    if (**at == (list ? ']' : '}'))
        return close_bracket(g, at);
    return list ? read_value(g, at, end) : read_name(g, at, end);
}

static enum json_token read_after_name(struct json_grammar *g, const char **at, const char *end)
{
    if (!at_mark(at, end))
        return JSON_MORE;
    if (**at != ':')
        return JSON_WRONG;
    ++*at;
    g->state = VALUE;
    return read_value(g, at, end);
}

static enum json_token read_after_value(struct json_grammar *g, const char **at, const char *end)
{
    if (!at_mark(at, end))
        return JSON_MORE;
    if (!g->depth)
        return JSON_WRONG;
    bool list = in_list(g);
    if (**at == (list ? ']' : '}'))
        return close_bracket(g, at);
    if (**at != ',')
        return JSON_WRONG;
    ++*at;
    g->state = list ? VALUE : NAME;
    return list ? read_value(g, at, end) : read_name(g, at, end);
}

enum json_token json_grammar_next(struct json_grammar *g, const char **at, const char *end)
{
    switch (g->state) {
    case BEHIND:
        return read_after_value(g, at, end);
    case COLON:
        return read_after_name(g, at, end);
    case VALUE:
        return read_value(g, at, end);
    case NAME:
        return read_name(g, at, end);
    case VALUE_OR_END:
    case NAME_OR_END:
        return read_after_bracket(g, at, end);
    case WORD:
        return read_word(g, at, end);
    default:
        return g->state >= NUMBER ? read_number(g, at, end) : read_string(g, at, end);
    }
}

bool json_grammar_ends(const struct json_grammar *g)
{
    return !g->depth && (g->state == BEHIND || number_may_end(g->state));
}

int json_grammar_fault(const struct json_grammar *g, size_t at, bool ended, struct err *err)
{
    static const char *const wrong[] = {
        [VALUE... VALUE_OR_END] = "expected a value",
        [NAME... NAME_OR_END] = "expected the name of a member",
        [COLON] = "expected ':'",
        [STRING] = "control character in a string",
        [CHARACTER] = "not UTF-8",
        [ESCAPE] = "bad escape",
        [WORD... MINUS] = "expected a value",
        [POINT] = "bad number",
        [EXPONENT... SIGN] = "bad number",
        [POWER] = NULL,
    };
    const char *what = wrong[g->state];
    if (g->state == WORD) // no value begins with these letters
        at -= g->len;
    if (g->state == TOO_DEEP)
        return err_set(err, ERR_LIMIT, "JSON is nested deeper than %d levels", JSON_DEPTH_MAX);
    if (!what) // after a value
        what = !g->depth    ? "text follows the end of the document"
               : in_list(g) ? "expected ',' or ']'"
                            : "expected ',' or '}'";
    else if (g->state == ESCAPE && g->n_escape)
        what = "bad \\u escape";
    else if (ended && (g->state == STRING || g->state == ESCAPE))
        what = "unterminated string";
    else if (ended && g->state <= VALUE_OR_END)
        what = "unexpected end";
    return err_set(err, ERR_INVALID, "not valid JSON at byte %zu: %s", at, what);
}
