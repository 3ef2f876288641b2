// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/tail.h"

#include "common/base/mem.h"

#include <string.h>

void tail_add(struct tail *t, const char *data, size_t n)
{
    if (n > TAIL_BYTES) {
        data += n - TAIL_BYTES;
        n = TAIL_BYTES;
        t->cut = true;
    }
    t->cut = t->cut || t->used + n > TAIL_BYTES;
    size_t first = MIN(n, TAIL_BYTES - t->at);
    memcpy(t->ring + t->at, data, first);
    memcpy(t->ring, data + first, n - first);
    t->at = (t->at + n) % TAIL_BYTES;
    t->used = MIN(t->used + n, (size_t)TAIL_BYTES);
}

void tail_get(const struct tail *t, struct buf *out)
{
    char text[TAIL_BYTES];
    size_t begin = (t->at + TAIL_BYTES - t->used) % TAIL_BYTES, first = MIN(t->used, TAIL_BYTES - begin), from = 0;
    memcpy(text, t->ring + begin, first);
    memcpy(text + first, t->ring, t->used - first);
    const char *newline = t->cut ? memchr(text, '\n', t->used) : NULL;
    if (newline && (size_t)(newline - text) + 1 < t->used)
        from = (size_t)(newline - text) + 1;
    int lines = 0;
    for (size_t i = t->used; i > from; i--)
        if (text[i - 1] == '\n' && i < t->used && ++lines == TAIL_LINES) {
            from = i;
            break;
        }
    buf_append(out, text + from, t->used - from);
}
