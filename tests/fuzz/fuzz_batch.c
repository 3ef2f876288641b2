// SPDX-License-Identifier: Apache-2.0
// Two results: a byte for the number of pieces, a u16 for the length of the first document, the documents. Each that is
// a batch is split into pieces with padding and must come back with all of its rows; both are joined, if they fit.
#include "common/base/mem.h"
#include "common/wire/batch.h"
#include "common/wire/batch_join.h"

#include <stdlib.h>
#include <string.h>

enum { PIECES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static char *gathered(const struct scatter *s, const struct scatter_source *sources)
{
    char *doc = xmalloc(s->len);
    scatter_gather(s, sources, doc);
    return doc;
}

static void same_tensors(const struct batch *b, const struct scatter_source *doc, const struct batch *back,
                         const char *text)
{
    must(b->json == back->json && b->rows == back->rows && b->n_columns == back->n_columns);
    must(b->doc.n_tensors == back->doc.n_tensors);
    for (size_t i = 0; i < b->doc.n_tensors; i++) {
        const struct safetensors_tensor *t = &b->doc.tensors[i], *u = safetensors_find(&back->doc, t->name);
        must(u && t->dtype == u->dtype && t->len == u->len && t->n_dims == u->n_dims);
        must(!t->len || memcmp(doc->data + t->offset, text + u->offset, t->len) == 0);
    }
}

static void split_and_join(const struct batch *b, const struct scatter_source *doc, size_t n, struct arena *a)
{
    struct scatter_source pieces[PIECES];
    struct batch read[PIECES], back;
    struct batch_result results[PIECES];
    struct scatter s;
    struct err err = ERR_INIT;
    size_t each, added;
    must(batch_pieces(b->rows, n, true, &each, &added, &err) == 0);
    for (size_t i = 0; i < n; i++) {
        s = SCATTER_INIT;
        must(batch_slice(b, i * each, each, a, &s, &err) == 0);
        pieces[i] = (struct scatter_source){gathered(&s, doc), s.len};
        scatter_done(&s);
        must(batch_read(pieces[i].data, pieces[i].len, a, &read[i], &err) == 0 && read[i].rows == each);
        results[i] = (struct batch_result){&read[i], (uint32_t)i, batch_padding(b->rows, each, i)};
    }
    s = SCATTER_INIT;
    if (batch_join(results, n, added ? each : 0, a, &s, &err) == 0) { // cadre.meta may be none
        char *text = gathered(&s, pieces);
        must(batch_read(text, s.len, a, &back, &err) == 0);
        same_tensors(b, doc, &back, text);
        free(text);
    }
    scatter_done(&s);
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)pieces[i].data);
}

static void join(const struct batch *batches, const struct scatter_source *docs, struct arena *a)
{
    const struct batch_result results[] = {{&batches[0], 0, 0}, {&batches[1], 1, 0}};
    struct scatter s = SCATTER_INIT;
    struct err err = ERR_INIT;
    struct batch back;
    int r = batch_join(results, 2, 0, a, &s, &err);
    must(r == err.code && !r == !err.msg[0]);
    if (r == 0) {
        char *text = gathered(&s, docs);
        must(batch_read(text, s.len, a, &back, &err) == 0 && back.rows == batches[0].rows + batches[1].rows);
        free(text);
    }
    scatter_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = ARENA_INIT;
    struct batch batches[2];
    if (size < 3)
        return 0;
    size_t first = MIN((size_t)data[1] | (size_t)data[2] << 8, size - 3);
    const struct scatter_source docs[] = {{(const char *)data + 3, first},
                                          {(const char *)data + 3 + first, size - 3 - first}};
    int good = 0;
    for (int i = 0; i < 2; i++) {
        struct err err = ERR_INIT;
        int r = batch_read(docs[i].data, docs[i].len, &a, &batches[i], &err);
        must(r == err.code && !r == !err.msg[0]);
        if (r == 0)
            split_and_join(&batches[i], &docs[i], data[0] % PIECES + 1u, &a);
        good += r == 0;
    }
    if (good == 2)
        join(batches, docs, &a);
    arena_done(&a);
    return 0;
}
