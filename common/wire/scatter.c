// SPDX-License-Identifier: Apache-2.0
#include "common/wire/scatter.h"

#include "common/base/fiber.h"
#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { PART_UNITS = 16 }; // cost of a part

void scatter_done(struct scatter *s)
{
    buf_done(&s->own);
    free(s->parts);
    *s = (struct scatter){0};
}

void scatter_add(struct scatter *s, uint32_t source, size_t offset, size_t len)
{
    struct scatter_part *last = s->n_parts ? &s->parts[s->n_parts - 1] : NULL;
    if (!len)
        return;
    fiber_spend(PART_UNITS);
    s->len += len;
    if (last && last->source == source && last->offset + last->len == offset) {
        last->len += len;
        return;
    }
    MEM_GROW(s->parts, s->n_parts, s->size);
    s->parts[s->n_parts++] = (struct scatter_part){source, offset, len};
}

void scatter_own(struct scatter *s, const char *bytes, size_t len)
{
    size_t offset = s->own.len;
    buf_append(&s->own, bytes, len);
    scatter_add(s, SCATTER_OWN, offset, len);
}

void scatter_gather(const struct scatter *s, const struct scatter_source *sources, char *out)
{
    for (size_t i = 0; i < s->n_parts; i++) {
        const struct scatter_part *part = &s->parts[i];
        if (part->len)
            memcpy(out, (part->source == SCATTER_OWN ? s->own.data : sources[part->source].data) + part->offset,
                   part->len);
        out += part->len;
    }
}
