// SPDX-License-Identifier: Apache-2.0
// References, as text and wherever they stand in JSON. Accepted references are written back the same. Found references
// lie in the document, in order.
#include "common/wire/ref.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void parse(const char *text, size_t len)
{
    struct arena a = ARENA_INIT;
    struct buf again = BUF_INIT(4 * REF_TEXT_MAX);
    struct err err = ERR_INIT;
    struct ref r, same;
    if (ref_parse(text, len, &a, &r, &err) == 0) {
        must(r.n >= 1 && r.n <= REF_PARTS_MAX && (r.form != REF_ONE || r.n == 1));
        ref_write(&r, &again);
        must(ref_parse(again.data, again.len, &a, &same, &err) == 0 && same.n == r.n && same.form == r.form);
        must(memcmp(&same.parts[r.n - 1], &r.parts[r.n - 1], sizeof *r.parts) == 0);
    } else {
        must(err.code == ERR_INVALID && err.msg[0]);
    }
    buf_done(&again);
    arena_done(&a);
}

// The check would hold nearly everything off.
static void parse_with_check(const char *text, size_t len)
{
    struct buf b = BUF_INIT(REF_TEXT_MAX);
    uint64_t hash = 14695981039346656037u;
    buf_puts(&b, "cadre:1:");
    if (buf_append(&b, text, len) == 0) {
        for (size_t i = 0; i < b.len; i++)
            hash = (hash ^ (unsigned char)b.data[i]) * 1099511628211u;
        if (buf_printf(&b, ":%08x", (unsigned)(uint32_t)hash) == 0)
            parse(b.data, b.len);
    }
    buf_done(&b);
}

static void find(const char *json, size_t len)
{
    struct ref_found f;
    size_t at = 0, behind = 0;
    while (ref_next(json, len, &at, &f)) {
        must(f.json >= json + behind && f.json + f.len == json + at && at <= len);
        must(f.text > f.json && f.text + f.text_len < f.json + f.len);
        parse(f.text, f.text_len);
        behind = at;
    }
    if (ref_is(json, len, &f))
        must(f.json >= json && f.json + f.len <= json + len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1); // of just that size, so that a read behind it is seen
    must(copy != NULL);
    if (size)
        memcpy(copy, data, size);
    parse(copy, size);
    parse_with_check(copy, size);
    find(copy, size);
    free(copy);
    return 0;
}
