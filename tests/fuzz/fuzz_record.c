// SPDX-License-Identifier: Apache-2.0
// Records from a peer. The first byte says how: bit 0 whole bodies, bits 1 to 7 how the rest is cut. A record_writer
// writes the records of the reader again, and they must read back as the same.
#include "common/base/mem.h"
#include "common/wire/record_reader.h"
#include "common/wire/record_writer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void written_reads_back(const struct record *rec)
{
    static char message[4096];
    struct record_writer w;
    struct record_reader r;
    struct record back;
    struct err err = ERR_INIT;
    struct record_header h = rec->h;
    h.flags &= (uint8_t)~RECORD_MORE;
    record_writer_init(&w, 1 << 22);
    record_reader_init(&r, &(struct record_reader_config){.whole = true});
    must(record_writer_copy(&w, &h, rec->body, rec->len, &err) == 0);
    int got = 0;
    for (size_t n; (n = record_writer_fill(&w, message, sizeof message)) > 0;) {
        const char *data = message;
        must(got == 0);
        while (n && (got = record_reader_next(&r, &data, &n, &back, &err)) == 1)
            must(n == 0 && back.len == rec->len && (!back.len || memcmp(back.body, rec->body, back.len) == 0));
        must(record_reader_at_boundary(&r));
    }
    must(got == 1 && w.queue.bytes == 0 && back.h.call == h.call && back.h.rank == h.rank && back.h.type == h.type &&
         back.h.flags == h.flags && back.h.dispatch == h.dispatch && back.h.execute == h.execute);
    record_reader_done(&r);
    record_writer_done(&w);
}

static void check(const struct record *rec, bool whole)
{
    must(rec->len <= 1 << 16 && !(whole && ((rec->h.flags & RECORD_MORE) || rec->offset)));
    must(record_type_name(rec->h.type)[0] != '?');
    struct record_call call;
    struct err err = ERR_INIT;
    if (rec->h.type == RECORD_CALL && record_call_decode(rec->body, rec->len, &call, &err) == 0)
        must(call.head_len + call.args_len + 4 == rec->len);
    written_reads_back(rec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    bool whole = data[0] & 1;
    size_t step = (data[0] >> 1) + 1u;
    struct quota *q = quota_new(1 << 18, NULL);
    struct record_reader r;
    record_reader_init(&r,
                       &(struct record_reader_config){.whole = whole, .max_body = 1 << 16, .max_open = 8, .quota = q});
    int got = 0;
    for (size_t at = 1; at < size && got >= 0;) {
        size_t len = MIN(step, size - at);
        char *piece = xmalloc(len); // its own allocation, so that a stale pointer is seen
        const char *p = piece;
        struct record rec;
        struct err err = ERR_INIT;
        memcpy(piece, data + at, len);
        at += len;
        while ((got = record_reader_next(&r, &p, &len, &rec, &err)) == 1)
            check(&rec, whole);
        must(got == 0 ? len == 0 : got == err.code && err.msg[0]);
        free(piece);
    }
    record_reader_done(&r);
    must(quota_used(q) == 0);
    quota_unref(q);
    return 0;
}
