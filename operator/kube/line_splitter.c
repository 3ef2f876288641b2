// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/line_splitter.h"

#include <string.h>

void line_splitter_init(struct line_splitter *s, size_t max_line)
{
    partial_text_init(&s->line, max_line);
}

void line_splitter_done(struct line_splitter *s)
{
    partial_text_done(&s->line);
}

void line_splitter_reset(struct line_splitter *s)
{
    partial_text_reset(&s->line);
}

int line_splitter_feed(struct line_splitter *s, const char *bytes, size_t n, text_fn fn, void *ctx, struct err *err)
{
    while (n) {
        const char *newline = memchr(bytes, '\n', n);
        size_t len = newline ? (size_t)(newline - bytes) : n;
        int r = partial_text_take(&s->line, bytes, len, newline, fn, ctx, err);
        if (r < 0)
            return r;
        len += newline != NULL;
        bytes += len;
        n -= len;
    }
    return 0;
}
