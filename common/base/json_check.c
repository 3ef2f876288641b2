// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_check.h"

#include "common/base/json_scan.h"
#include "common/base/mem.h"

#include <string.h>

enum state {
    VALUE,
    VALUE_OR_END, // in a list that has just begun
    NAME_OR_END,  // in an object that has just begun
    NAME,
    COLON,
    BEHIND, // after a value
    STRING,
    CHARACTER, // inside a character of several bytes
    ESCAPE,
    HEX,
    PAIR_BACKSLASH, // before the second half of a pair
    PAIR_U,
    WORD,
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

static bool in_list(const struct json_check *s)
{
    return s->lists[(s->depth - 1) / 64] >> (s->depth - 1) % 64 & 1;
}

static bool open_bracket(struct json_check *s, char c)
{
    if (s->depth == JSON_DEPTH_MAX)
        return false;
    uint64_t bit = (uint64_t)1 << s->depth % 64, *word = &s->lists[s->depth / 64];
    *word = c == '[' ? *word | bit : *word & ~bit;
    s->depth++;
    s->state = c == '[' ? VALUE_OR_END : NAME_OR_END;
    return true;
}

static bool close_bracket(struct json_check *s, char c)
{
    if (!s->depth || c != (in_list(s) ? ']' : '}'))
        return false;
    s->depth--;
    s->state = BEHIND;
    return true;
}

static bool begin_string(struct json_check *s, bool key)
{
    s->key = key;
    s->state = STRING;
    return true;
}

static bool begin_word(struct json_check *s, const char *rest)
{
    s->word = rest;
    s->state = WORD;
    return true;
}

static bool begin_value(struct json_check *s, char c)
{
    switch (c) {
    case '"':
        return begin_string(s, false);
    case '[':
    case '{':
        return open_bracket(s, c);
    case 't':
        return begin_word(s, "rue");
    case 'f':
        return begin_word(s, "alse");
    case 'n':
        return begin_word(s, "ull");
    case '-':
        s->state = MINUS;
        return true;
    default:
        s->state = c == '0' ? ZERO : DIGITS;
        return is_digit(c);
    }
}

static bool behind_value(struct json_check *s, char c)
{
    if (c != ',')
        return close_bracket(s, c);
    s->state = s->depth && in_list(s) ? VALUE : NAME;
    return s->depth > 0;
}

// A byte between strings and numbers. It is not a blank.
static bool take_mark(struct json_check *s, char c)
{
    switch (s->state) {
    case VALUE_OR_END:
        if (c == ']')
            return close_bracket(s, c);
        return begin_value(s, c);
    case VALUE:
        return begin_value(s, c);
    case NAME_OR_END:
        if (c == '}')
            return close_bracket(s, c);
        return c == '"' && begin_string(s, true);
    case NAME:
        return c == '"' && begin_string(s, true);
    case COLON:
        s->state = VALUE;
        return c == ':';
    default:
        return behind_value(s, c);
    }
}

static bool take_character(struct json_check *s, char c)
{
    bool fits = utf8_feed(&s->utf8, &c, 1);
    s->state = utf8_complete(&s->utf8) ? STRING : CHARACTER;
    return fits;
}

static bool take_escape(struct json_check *s, char c)
{
    s->state = c == 'u' ? HEX : STRING;
    s->hex = 0;
    s->code = 0;
    s->second = false;
    return c && strchr("u\"\\/bfnrt", c);
}

// Surrogates come in pairs.
static bool end_hex(struct json_check *s)
{
    bool low = s->code >= 0xdc00 && s->code <= 0xdfff, high = s->code >= 0xd800 && s->code < 0xdc00;
    s->state = high && !s->second ? PAIR_BACKSLASH : STRING;
    return s->second ? low : !low && s->code;
}

static bool take_hex(struct json_check *s, char c)
{
    int digit = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0)
        return false;
    s->code = (uint16_t)(s->code << 4 | digit);
    return ++s->hex < 4 || end_hex(s);
}

static bool take_pair(struct json_check *s, char c)
{
    bool fits = c == (s->state == PAIR_BACKSLASH ? '\\' : 'u');
    s->state = s->state == PAIR_BACKSLASH ? PAIR_U : HEX;
    s->hex = 0;
    s->code = 0;
    s->second = true;
    return fits;
}

static bool take_word(struct json_check *s, char c)
{
    if (*s->word++ != c)
        return false;
    if (!*s->word)
        s->state = BEHIND;
    return true;
}

// A byte of a string that needs a closer look.
static bool take_special(struct json_check *s, char c)
{
    if (c == '"')
        s->state = s->key ? COLON : BEHIND;
    else if (c == '\\')
        s->state = ESCAPE;
    else
        return (signed char)c < 0 && take_character(s, c);
    return true;
}

// Within a number. Any other character ends the number, if a number may end here.
static bool take_number(struct json_check *s, char c, bool *ret_over)
{
    bool digit = is_digit(c), whole = s->state == ZERO || s->state == DIGITS;
    bool may_end = whole || s->state == FRACTION || s->state == POWER;
    if (digit && s->state != ZERO) {
        s->state = s->state == MINUS      ? (c == '0' ? ZERO : DIGITS)
                   : s->state == POINT    ? FRACTION
                   : s->state >= EXPONENT ? POWER
                                          : s->state;
        return true;
    }
    if (c == '.' && whole) {
        s->state = POINT;
        return true;
    }
    if ((c == 'e' || c == 'E') && (whole || s->state == FRACTION)) {
        s->state = EXPONENT;
        return true;
    }
    if ((c == '+' || c == '-') && s->state == EXPONENT) {
        s->state = SIGN;
        return true;
    }
    *ret_over = true;
    s->state = BEHIND;
    return may_end && !digit;
}

static bool take_byte(struct json_check *s, char c)
{
    switch (s->state) {
    case STRING:
        return take_special(s, c);
    case CHARACTER:
        return take_character(s, c);
    case ESCAPE:
        return take_escape(s, c);
    case HEX:
        return take_hex(s, c);
    case PAIR_BACKSLASH:
    case PAIR_U:
        return take_pair(s, c);
    case WORD:
        return take_word(s, c);
    default:
        return json_is_space(c) || take_mark(s, c);
    }
}

// Whether a value at this depth is inside of objects only, so that it has a name.
static bool has_name(const struct json_check *s, uint8_t depth)
{
    return depth && !(s->lists[0] & (((uint64_t)1 << depth) - 1));
}

static void note_end(struct json_check *s, uint8_t depth, size_t end)
{
    size_t at = s->begins[depth];
    if (!has_name(s, depth) || end - at < JSON_LONG)
        return;
    if (s->longs_n < JSON_LONGS_MAX)
        s->longs[s->longs_n] = (struct json_long){at, end - at, depth};
    s->longs_n++;
}

// Called after the byte at `at` was taken. `depth` and `state` are those before it.
static void note(struct json_check *s, uint8_t depth, uint8_t state, size_t at)
{
    bool opened = s->depth > depth, closed = s->depth < depth;
    if (opened || (s->state == STRING && !s->key && (state == VALUE || state == VALUE_OR_END)))
        s->begins[depth] = at;
    else if (closed || (s->state == BEHIND && state == STRING))
        note_end(s, s->depth, at + 1);
}

bool json_check_feed(struct json_check *s, const char *bytes, size_t n)
{
    const char *p = bytes, *end = bytes + n;
    size_t from = s->at;
    s->at += n;
    while (p < end) {
        bool over = false;
        uint8_t depth = s->depth, state = s->state;
        if (s->state == STRING && (p = json_plain_end(p, end)) == end)
            break;
        while (p < end && (s->state == DIGITS || s->state == FRACTION) && is_digit(*p))
            p++;
        if (p == end)
            break;
        if (!(s->state >= MINUS ? take_number(s, *p, &over) : take_byte(s, *p))) {
            s->at = from + (size_t)(p - bytes);
            return false;
        }
        if (MIN(depth, s->depth) < ARRAY_LEN(s->begins) && !over)
            note(s, depth, state, from + (size_t)(p - bytes));
        p += !over;
    }
    return true;
}

bool json_check_ends(const struct json_check *s)
{
    bool number = s->state == ZERO || s->state == DIGITS || s->state == FRACTION || s->state == POWER;
    return !s->depth && (s->state == BEHIND || number);
}
