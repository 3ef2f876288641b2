// SPDX-License-Identifier: Apache-2.0
// A document made of parts of other documents, whose bytes are not copied. A part has the number of its source, an
// offset and a length. Only new bytes (heads, brackets) are stored here. The owner of the sources (blobs, a stream)
// turns parts into what it sends.
#pragma once

#include "common/base/buf.h"

#include <stdint.h>

#define SCATTER_OWN UINT32_MAX // as the source of a part: the bytes of `own`

struct scatter_part {
    uint32_t source;
    size_t offset, len; // len > 0
};

struct scatter {
    struct buf own;
    struct scatter_part *parts; // in the order of the document; neighbours that touch are one part
    size_t n_parts, size;
    size_t len; // of the document
};

struct scatter_source {
    const char *data;
    size_t len;
};

#define SCATTER_INIT ((struct scatter){.own = BUF_INIT(SIZE_MAX / 2)}) // no limit of its own: the sources had one

void scatter_done(struct scatter *s);
void scatter_own(struct scatter *s, const char *bytes, size_t len); // copies them
void scatter_add(struct scatter *s, uint32_t source, size_t offset, size_t len);
// Copies the document to s->len bytes at out. Every part must lie in its source.
void scatter_gather(const struct scatter *s, const struct scatter_source *sources, char *out);
