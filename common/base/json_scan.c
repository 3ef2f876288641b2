// SPDX-License-Identifier: Apache-2.0
// Inside lists and objects, the scan looks at sixty-four bytes together. One bit for each byte says if it is a quote, a
// bracket or a backslash. The parity of the quotes before a byte says if it is in a string.
#include "common/base/json_scan.h"

#include "common/base/fiber.h"

#include <string.h>

enum { FIRST, LATER, OVER };

enum { ITEM_UNITS = 16 }; // the cost of an element, besides its bytes

// Returns the byte after the closing quote; NULL if there is none.
static const char *rest_of_string(const char *p, const char *end, bool *escaped)
{
    for (; p < end; p++) {
        if (*escaped) {
            *escaped = false;
            continue;
        }
        if ((signed char)*p < 0)
            continue;
        p = json_plain_end(p, end);
        if (p == end)
            break;
        if (*p == '"')
            return p + 1;
        *escaped = *p == '\\';
    }
    return NULL;
}

const char *json_string_end(const char *p, const char *end)
{
    bool escaped = false;
    return rest_of_string(p + 1, end, &escaped);
}

// The bytes that end a number, true, false or null.
static const bool ends_word[256] = {
    ['\0'] = true, [','] = true,  [']'] = true, ['}'] = true, [' '] = true, ['\n'] = true,
    ['\t'] = true, ['\r'] = true, [':'] = true, ['"'] = true, ['['] = true, ['{'] = true};

static inline const char *word_end(const char *p, const char *end)
{
    const char *stop;
    do {
        stop = fiber_step(p, end);
        while (p < stop && !ends_word[(unsigned char)*p])
            p++;
    } while (fiber_goes_on(p, stop, end));
    return p;
}

static void open_bracket(struct json_skip *s, char c)
{
    if (s->paired && s->depth == JSON_SKIP_PAIRED_MAX) {
        s->broken = true;
        return;
    }
    if (s->paired) {
        uint64_t bit = (uint64_t)1 << s->depth % 64, *word = &s->lists[s->depth / 64];
        *word = c == '[' ? *word | bit : *word & ~bit;
    }
    s->depth++;
}

static void close_bracket(struct json_skip *s, char c)
{
    s->depth--;
    if (s->paired && (s->lists[s->depth / 64] >> s->depth % 64 & 1) != (c == ']'))
        s->broken = true;
}

// Returns the byte after the value. NULL: the value continues after `end`, or is broken at *at.
static const char *by_bytes(struct json_skip *s, const char *p, const char *end, const char **at)
{
    while (p < end) {
        if (s->in_string) {
            p = rest_of_string(p, end, &s->escaped);
            if (!p)
                return NULL;
            s->in_string = false;
            continue;
        }
        *at = p;
        char c = *p++;
        if (c == '"') {
            s->in_string = true;
        } else if (c == '[' || c == '{') {
            open_bracket(s, c);
        } else if (c == ']' || c == '}') {
            close_bracket(s, c);
            if (!s->depth && !s->broken)
                return p;
        }
        if (s->broken)
            return NULL;
    }
    return NULL;
}

#ifdef __SSE2__
#include <emmintrin.h>

enum { BLOCK = 64 };

struct marks {
    uint64_t quotes, backslashes, opens, closes;
};

static uint64_t equal(__m128i bytes, char c, int shift)
{
    return (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(c))) << shift;
}

static struct marks marks_of(const char *p)
{
    struct marks m = {0};
    for (int i = 0; i < BLOCK; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(p + i));
        __m128i brace = _mm_or_si128(v, _mm_set1_epi8(0x20)); // turns only brackets into braces
        m.quotes |= equal(v, '"', i);
        m.backslashes |= equal(v, '\\', i);
        m.opens |= equal(brace, '{', i);
        m.closes |= equal(brace, '}', i);
    }
    return m;
}

// Sets each bit to the parity of the bits up to it.
static uint64_t parity(uint64_t bits)
{
    for (int by = 1; by < BLOCK; by *= 2)
        bits ^= bits << by;
    return bits;
}

// Returns the byte after the value. NULL: the value does not end in the block, or is broken at *at.
static const char *end_in_block(struct json_skip *s, const char *p, uint64_t opens, uint64_t closes, const char **at)
{
    if (!s->paired && s->depth > (size_t)__builtin_popcountll(closes)) { // most blocks
        s->depth += (size_t)__builtin_popcountll(opens) - (size_t)__builtin_popcountll(closes);
        return NULL;
    }
    for (uint64_t left = opens | closes; left && !s->broken; left &= left - 1) {
        *at = p + __builtin_ctzll(left);
        if (opens & left & -left)
            open_bracket(s, **at);
        else
            close_bracket(s, **at);
        if (!s->depth && !s->broken)
            return *at + 1;
    }
    return NULL;
}

// Does the same as by_bytes(), for a value with an open bracket.
static const char *by_blocks(struct json_skip *s, const char *p, const char *end, const char **at)
{
    while (end - p >= BLOCK) {
        struct marks m = marks_of(p);
        const char *behind;
        if (s->in_string && !m.quotes) { // json_plain_end() is faster for long strings
            p = rest_of_string(p, end, &s->escaped);
            if (!p)
                return NULL;
            s->in_string = false;
            continue;
        }
        uint64_t escaped = m.backslashes << 1 | s->escaped;
        uint64_t inside = parity(m.quotes & ~escaped) ^ -(uint64_t)s->in_string;
        if (m.backslashes & (escaped | ~inside)) { // an escaped backslash, or one outside of strings: rare
            behind = by_bytes(s, p, p + BLOCK, at);
        } else {
            behind = end_in_block(s, p, m.opens & ~inside, m.closes & ~inside, at);
            s->escaped = m.backslashes >> (BLOCK - 1);
            s->in_string = inside >> (BLOCK - 1);
        }
        if (behind || s->broken)
            return behind;
        p += BLOCK;
    }
    return by_bytes(s, p, end, at);
}
#else
static const char *by_blocks(struct json_skip *s, const char *p, const char *end, const char **at)
{
    return by_bytes(s, p, end, at);
}
#endif

bool json_skip_start(struct json_skip *s, char first)
{
    *s = (struct json_skip){.scalar = first != '"' && first != '{' && first != '['};
    return first && strchr("\"{[-0123456789tfn", first);
}

static const char *skip_string(struct json_skip *s, const char *p, const char *end)
{
    if (!s->in_string && p < end) {
        s->in_string = true;
        p++;
    }
    return rest_of_string(p, end, &s->escaped);
}

size_t json_skip_feed(struct json_skip *s, const char *bytes, size_t n, bool *ret_ended)
{
    const char *end = bytes + n, *at = end, *behind;
    if (s->scalar) {
        behind = word_end(bytes, end);
        *ret_ended = behind < end;
        return (size_t)(behind - bytes);
    }
    if (s->depth)
        behind = by_blocks(s, bytes, end, &at);
    else if (s->in_string || (n && *bytes == '"'))
        behind = skip_string(s, bytes, end);
    else if (n) {
        open_bracket(s, *bytes);
        behind = by_blocks(s, bytes + 1, end, &at);
    } else
        behind = NULL;
    *ret_ended = behind != NULL;
    return (size_t)((behind ? behind : s->broken ? at : end) - bytes);
}

static void skip_space(struct json_scan *s)
{
    const char *stop;
    do {
        stop = fiber_step(s->p, s->end);
        while (s->p < stop && json_is_space(*s->p))
            s->p++;
    } while (fiber_goes_on(s->p, stop, s->end));
}

static bool skip_quoted(struct json_scan *s)
{
    bool escaped = false;
    const char *p = s->p + 1, *stop, *behind;
    do {
        stop = fiber_step(p, s->end);
        behind = rest_of_string(p, stop, &escaped);
        p = behind ? behind : stop;
    } while (!behind && fiber_goes_on(p, stop, s->end));
    s->p = p;
    return behind;
}

static bool skip_nested(struct json_scan *s)
{
    bool ended;
    struct json_skip skip;
    json_skip_start(&skip, *s->p);
    skip.paired = !s->counts;
    const char *stop;
    do {
        stop = fiber_step(s->p, s->end);
        s->p += json_skip_feed(&skip, s->p, (size_t)(stop - s->p), &ended);
    } while (!ended && fiber_goes_on(s->p, stop, s->end));
    return ended;
}

static bool skip_value(struct json_scan *s)
{
    if (s->p == s->end)
        return false;
    if (*s->p == '"')
        return skip_quoted(s);
    if (*s->p == '[' || *s->p == '{')
        return skip_nested(s);
    const char *from = s->p, *behind = word_end(from, s->end);
    s->p = behind;
    return behind > from;
}

int json_scan_begin(struct json_scan *s, const char *json, size_t len)
{
    *s = (struct json_scan){.p = json, .end = json + len};
    skip_space(s);
    if (s->p == s->end || (*s->p != '[' && *s->p != '{'))
        return 0;
    s->close = *s->p++ == '[' ? ']' : '}';
    return 1;
}

void json_scan_resume(struct json_scan *s, const char *rest, size_t len)
{
    *s = (struct json_scan){.p = rest, .end = rest + len, .close = ']', .state = LATER};
}

static int ended(struct json_scan *s)
{
    s->p++;
    skip_space(s);
    s->state = OVER;
    return s->p == s->end ? 0 : -1;
}

static int next_key(struct json_scan *s, struct json_item *ret)
{
    if (s->p == s->end || *s->p != '"')
        return -1;
    ret->key = s->p + 1;
    if (!skip_quoted(s))
        return -1;
    ret->key_len = (size_t)(s->p - 1 - ret->key);
    skip_space(s);
    if (s->p == s->end || *s->p++ != ':')
        return -1;
    skip_space(s);
    return 0;
}

int json_scan_next(struct json_scan *s, struct json_item *ret)
{
    const char *from = s->p;
    *ret = (struct json_item){0};
    skip_space(s);
    if (s->state == OVER || s->p == s->end)
        return -1;
    if (*s->p == s->close)
        return ended(s);
    if (s->state == LATER) {
        if (*s->p++ != ',')
            return -1;
        skip_space(s);
    }
    s->state = LATER;
    if (s->close == '}' && next_key(s, ret) < 0)
        return -1;
    ret->text = s->p;
    if (!skip_value(s))
        return -1;
    ret->len = (size_t)(s->p - ret->text);
    fiber_spend(ITEM_UNITS + (size_t)(s->p - from) % FIBER_STEP); // fiber_step() has counted the whole steps
    return 1;
}

bool json_scan_one(const char *json, size_t len)
{
    struct json_scan s = {.p = json, .end = json + len};
    skip_space(&s);
    if (!skip_value(&s))
        return false;
    skip_space(&s);
    return s.p == s.end;
}
