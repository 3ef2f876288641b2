// SPDX-License-Identifier: Apache-2.0
// Sixty-four bytes at a time, a bit for each: which are quotes, brackets, backslashes. Which of them are inside of
// strings is the parity of the quotes before them. Most blocks have fewer ends than there are open brackets, so that
// theirs need not be looked at one by one.
#include "common/base/json_nest.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct place {
    size_t depth;
    bool in_string, escaped;
};

static const char *end_by_bytes(const char *p, const char *end, struct place at)
{
    for (; p < end; p++) {
        char c = *p;
        if (at.escaped)
            at.escaped = false;
        else if (at.in_string && c == '\\')
            at.escaped = true;
        else if (c == '"')
            at.in_string = !at.in_string;
        else if (at.in_string)
            continue;
        else if (c == '{' || c == '[')
            at.depth++;
        else if ((c == '}' || c == ']') && --at.depth == 0)
            return p + 1;
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
        __m128i brace = _mm_or_si128(v, _mm_set1_epi8(0x20)); // of a bracket; of nothing else
        m.quotes |= equal(v, '"', i);
        m.backslashes |= equal(v, '\\', i);
        m.opens |= equal(brace, '{', i);
        m.closes |= equal(brace, '}', i);
    }
    return m;
}

// Each bit the parity of those up to it.
static uint64_t parity(uint64_t bits)
{
    for (int by = 1; by < BLOCK; by *= 2)
        bits ^= bits << by;
    return bits;
}

// The index behind the bracket at which no other one is open any more; 0: the block has none.
static size_t end_in_block(uint64_t opens, uint64_t closes, size_t *depth)
{
    if (*depth > (size_t)__builtin_popcountll(closes)) {
        *depth += (size_t)__builtin_popcountll(opens) - (size_t)__builtin_popcountll(closes);
        return 0;
    }
    for (uint64_t left = opens | closes; left; left &= left - 1) {
        uint64_t first = left & -left;
        if (opens & first)
            ++*depth;
        else if (--*depth == 0)
            return (size_t)__builtin_ctzll(first) + 1;
    }
    return 0;
}

const char *json_nest_end(const char *p, const char *end)
{
    struct place at = {0};
    for (; end - p >= BLOCK; p += BLOCK) {
        struct marks m = marks_of(p);
        uint64_t escaped = m.backslashes << 1 | at.escaped;
        if (m.backslashes & escaped)
            break; // escaped backslashes are rare
        uint64_t inside = parity(m.quotes & ~escaped) ^ -(uint64_t)at.in_string;
        size_t n = end_in_block(m.opens & ~inside, m.closes & ~inside, &at.depth);
        if (n)
            return p + n;
        at.escaped = m.backslashes >> (BLOCK - 1);
        at.in_string = inside >> (BLOCK - 1);
    }
    return end_by_bytes(p, end, at);
}
#else
const char *json_nest_end(const char *p, const char *end)
{
    return end_by_bytes(p, end, (struct place){0});
}
#endif
