// SPDX-License-Identifier: Apache-2.0
#include "common/base/copy.h"

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

enum { LINE = 64, PAGE = 4096, ROUND = 4 * PAGE, AHEAD = 2 * LINE };

static void copy_line(char *to, const char *from)
{
    for (int i = 0; i < LINE; i += 16)
        _mm_stream_si128((__m128i *)(void *)(to + i), _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
}

// Line by line of four pages in turns: several rows of the memory are open at a time.
static void copy_round(char *to, const char *from)
{
    for (int line = 0; line < PAGE; line += LINE)
        for (int page = line; page < ROUND; page += PAGE) {
            _mm_prefetch(from + page + AHEAD, _MM_HINT_T0);
            copy_line(to + page, from + page);
        }
}

static void copy_past_caches(char *to, const char *from, size_t len)
{
    size_t lead = -(uintptr_t)to % LINE;
    memcpy(to, from, lead);
    to += lead;
    from += lead;
    for (len -= lead; len >= ROUND; len -= ROUND, to += ROUND, from += ROUND)
        copy_round(to, from);
    _mm_sfence(); // whoever is told of them sees the bytes
    memcpy(to, from, len);
}

void copy_bytes(void *to, const void *from, size_t len)
{
    if (len >= COPY_LONG)
        copy_past_caches(to, from, len);
    else if (len)
        memcpy(to, from, len);
}

#else

void copy_bytes(void *to, const void *from, size_t len)
{
    if (len)
        memcpy(to, from, len);
}

#endif
