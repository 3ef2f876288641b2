// SPDX-License-Identifier: Apache-2.0
#include "common/wire/record.h"

#include "common/base/le.h"
#include "common/base/mem.h"

enum sort { SORT_NONE, SORT_S, SORT_C, SORT_A };

#define X(name, number, sort) [number] = {#name, SORT_##sort},
static const struct {
    const char *name;
    enum sort sort;
} types[] = {RECORD_TYPES(X)};
#undef X

static enum sort sort_of(unsigned type)
{
    return type < ARRAY_LEN(types) ? types[type].sort : SORT_NONE;
}

bool record_is_answer(unsigned type)
{
    return type == RECORD_RESULT || type == RECORD_ERROR;
}

const char *record_type_name(unsigned type)
{
    return sort_of(type) == SORT_NONE ? "?" : types[type].name;
}

void record_header_encode(char *out, const struct record_header *h)
{
    le_put_u32(out, h->len);
    le_put_u32(out + 4, h->call);
    le_put_u32(out + 8, h->rank);
    out[12] = (char)h->type;
    out[13] = (char)h->flags;
    out[14] = (char)h->dispatch;
    out[15] = (char)h->execute;
}

static int check_flags(const struct record_header *h, struct err *err)
{
    bool parts =
        h->type == RECORD_CALL || h->type == RECORD_ARGS || h->type == RECORD_RESULT || h->type == RECORD_ERROR;
    unsigned of_call = h->type == RECORD_CALL ? RECORD_QUIET | RECORD_ORDERED | RECORD_REFS | RECORD_CODE : 0;
    unsigned shared = h->type == RECORD_CALL || h->type == RECORD_RESULT ? RECORD_SHARED : 0;
    if (h->flags & ~(RECORD_MORE | (parts ? RECORD_PARTS : 0) | of_call | shared))
        return err_set(err, ERR_PROTO, "a %s record with flags 0x%02x", record_type_name(h->type), h->flags);
    if ((h->flags & RECORD_MORE) && h->len == 0)
        return err_set(err, ERR_PROTO, "a %s record says that more follows, but is empty", record_type_name(h->type));
    return 0;
}

static int check_modes(const struct record_header *h, struct err *err)
{
    bool call = h->type == RECORD_CALL;
    if (h->dispatch && !(call && mode_of(h->dispatch)))
        return err_set(err, ERR_PROTO, "a %s record with dispatch mode %u", record_type_name(h->type), h->dispatch);
    if (h->execute && !(call && mode_execute_of(h->execute)))
        return err_set(err, ERR_PROTO, "a %s record with execute mode %u", record_type_name(h->type), h->execute);
    return 0;
}

int record_header_decode(const char *in, struct record_header *ret, struct err *err)
{
    struct record_header h = {.len = le_get_u32(in),
                              .call = le_get_u32(in + 4),
                              .rank = le_get_u32(in + 8),
                              .type = (uint8_t)in[12],
                              .flags = (uint8_t)in[13],
                              .dispatch = (uint8_t)in[14],
                              .execute = (uint8_t)in[15]};
    enum sort sort = sort_of(h.type);
    if (sort == SORT_NONE)
        return err_set(err, ERR_PROTO, "a record of unknown type %u", h.type);
    if (h.len > RECORD_BODY_MAX)
        return err_set(err, ERR_LIMIT, "a %s record of %u bytes; at most %zu, the rest in further records",
                       record_type_name(h.type), h.len, RECORD_BODY_MAX);
    // An ERROR without a call is about the session.
    if ((sort == SORT_S) != (h.call == 0) && !(h.type == RECORD_ERROR && h.call == 0))
        return err_set(err, ERR_PROTO, "a %s record with call id %u", record_type_name(h.type), h.call);
    int r = check_flags(&h, err);
    if (r == 0)
        r = check_modes(&h, err);
    if (r == 0)
        *ret = h;
    return r;
}

int record_call_decode(const char *body, size_t len, struct record_call *ret, struct err *err)
{
    uint32_t head_len = len >= 4 ? le_get_u32(body) : 0;
    if (len < 4 || head_len > len - 4)
        return err_set(err, ERR_PROTO, "a CALL of %zu bytes is shorter than its head", len);
    *ret = (struct record_call){
        .head = body + 4, .head_len = head_len, .args = body + 4 + head_len, .args_len = len - 4 - head_len};
    return 0;
}

void record_call_prefix(char out[4], uint32_t head_len)
{
    le_put_u32(out, head_len);
}
