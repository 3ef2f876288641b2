// SPDX-License-Identifier: Apache-2.0
#include "common/wire/archive_piece.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/wire/record.h"

#include <string.h>

bool archive_sha256(const char *text)
{
    return text && strspn(text, "0123456789abcdef") == ARCHIVE_SHA256_LEN && !text[ARCHIVE_SHA256_LEN];
}

void archive_piece_write(const struct archive_piece *p, struct buf *out)
{
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    char prefix[4];
    writer_object(&w, NULL);
    writer_str(&w, "archive", p->sha256);
    writer_i64(&w, "offset", p->offset);
    if (p->group) {
        writer_str(&w, "group", p->group);
        writer_i64(&w, "rank", p->rank);
        writer_i64(&w, "attempt", p->attempt);
    }
    if (p->missing)
        writer_bool(&w, "missing", true);
    writer_object_end(&w);
    record_call_prefix(prefix, (uint32_t)w.buf.len);
    buf_append(out, prefix, sizeof prefix);
    buf_append(out, w.buf.data, w.buf.len);
    if (p->len)
        buf_append(out, p->data, p->len);
}

static bool read_head(const struct json *head, struct arena *a, struct archive_piece *ret)
{
    int64_t rank = 0, attempt = 0;
    ret->sha256 = json_str(json_get(head, "archive"), a);
    ret->group = json_str(json_get(head, "group"), a);
    bool good = archive_sha256(ret->sha256) && json_i64(json_get(head, "offset"), &ret->offset) && ret->offset >= 0;
    if (ret->group)
        good = good && json_i64(json_get(head, "rank"), &rank) && json_i64(json_get(head, "attempt"), &attempt);
    ret->rank = (uint32_t)rank;
    ret->attempt = (uint32_t)attempt;
    ret->missing = json_is_true(json_get(head, "missing"));
    return good && rank >= 0 && rank < UINT32_MAX && attempt >= 0 && attempt <= UINT32_MAX;
}

int archive_piece_read(const char *body, size_t len, struct arena *a, struct archive_piece *ret, struct err *err)
{
    struct record_call parts;
    struct json *head;
    struct err why = ERR_INIT;
    *ret = (struct archive_piece){0};
    if (record_call_decode(body, len, &parts, &why) < 0 || parts.head_len > ARCHIVE_HEAD_MAX ||
        parts.args_len > ARCHIVE_PIECE_MAX || json_parse(parts.head, parts.head_len, NULL, a, &head, &why) < 0 ||
        !read_head(head, a, ret))
        return err_set(err, ERR_PROTO, "ARCHIVE: an ask or a piece has \"archive\", the SHA-256, and \"offset\"");
    ret->data = parts.args;
    ret->len = parts.args_len;
    return 0;
}
