// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/split.h"

#include "common/base/fiber.h"
#include "common/base/json_scan.h"
#include "common/wire/batch.h"
#include "common/wire/body_list.h"
#include "common/wire/mode.h"
#include "operator/proxy/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 64 };

struct splitting {
    const struct split_input *in;
    const struct record_call *parts;
    struct split *s;
    size_t args_at; // offset of the arguments in s->body
};

static int no_json(const struct splitting *p, const struct json_scan *s, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s(): the arguments are not valid JSON at byte %zu", p->in->call.method,
                   (size_t)(s->p - p->parts->args));
}

static int wrong_count(const struct splitting *p, const char *what, uint32_t found, bool more, struct err *err)
{
    if (!p->in->planned)
        return err_set(
            err, ERR_INVALID,
            "%s(): %s has %s%u elements, %s has %u ranks; a list of arguments must have one element per rank",
            p->in->call.method, what, more ? "more than " : "", found, p->in->group, p->s->n);
    return err_set(err, ERR_INVALID, "%s(): %s has %s%u elements; its %u pieces need one each", p->in->call.method,
                   what, more ? "more than " : "", found, p->s->n);
}

int split_no_room(const char *method, struct err *err)
{
    return err_set(err, ERR_LIMIT, "%s(): no room for its arguments: too many calls of this client wait already",
                   method);
}

int split_too_many_heads(const char *method, uint32_t n, struct err *err)
{
    return err_set(err, ERR_LIMIT,
                   "%s(): the heads of its %u pieces take more than %zu bytes; send fewer tensors or columns", method,
                   n, SPLIT_MADE_MAX);
}

static int no_room(const struct splitting *p, struct err *err)
{
    return split_no_room(p->in->call.method, err);
}

// Parts

static bool add_part(struct split *s, struct blob *blob, size_t offset, size_t len)
{
    if (s->n_parts == s->size) {
        size_t size = MAX(s->size * 2, (size_t)s->n + 8), more = (size - s->size) * sizeof *s->parts;
        if (!quota_charge(s->quota, more))
            return false;
        s->charged += more;
        s->parts = xrealloc(s->parts, size, sizeof *s->parts);
        s->size = size;
    }
    s->parts[s->n_parts++] = (struct record_part){blob, offset, len};
    return true;
}

static void piece_ends(struct split *s, uint32_t i, size_t first)
{
    s->pieces[i] = (struct split_piece){.first = first, .n = s->n_parts - first};
}

// Adds a segment of the call's body.
static bool add_given(const struct splitting *p, const char *text, size_t len)
{
    return add_part(p->s, p->s->body, p->args_at + (size_t)(text - p->parts->args), len);
}

// Elements

static int split_list(const struct splitting *p, struct json_scan *scan, struct err *err)
{
    struct json_item item;
    struct split *s = p->s;
    struct blob *marks = p->in->marks;
    uint32_t n = 0;
    int got;
    for (; (got = json_scan_next(scan, &item)) > 0 && n < s->n; n++) {
        size_t first = s->n_parts;
        bool alone = *item.text != '{' && *item.text != '[';
        if ((alone && !add_part(s, marks, CALL_MARK_OPEN, 1)) || !add_given(p, item.text, item.len) ||
            (alone && !add_part(s, marks, CALL_MARK_CLOSE, 1)))
            return no_room(p, err);
        piece_ends(s, n, first);
    }
    if (got < 0)
        return no_json(p, scan, err);
    return got > 0 || n < s->n ? wrong_count(p, "the list of arguments", n, got > 0, err) : 0;
}

static int split_bodies(const struct splitting *p, struct err *err)
{
    struct body_list l;
    struct scatter_source body;
    int r = body_list_read(p->parts->args, p->parts->args_len, &l, err);
    if (r < 0)
        return err_wrap(err, "%s(): the arguments", p->in->call.method);
    if (l.n != p->s->n)
        return wrong_count(p, "the list of arguments", l.n, false, err);
    for (uint32_t i = 0; body_list_next(&l, &body); i++) {
        size_t first = p->s->n_parts;
        if (!add_given(p, body.data, body.len))
            return no_room(p, err);
        piece_ends(p->s, i, first);
    }
    return 0;
}

static bool put(struct blob *b, const char *text, size_t len)
{
    if (!blob_reserve(b, len))
        return false;
    fiber_copy(b->data + b->len, text, len);
    b->len += len;
    return true;
}

static bool put_member(struct blob *b, bool first, const struct json_item *key, const struct json_item *value)
{
    if (!key->key)
        return put(b, first ? "[" : ",", 1) && put(b, value->text, value->len);
    return put(b, first ? "{\"" : ",\"", 2) && put(b, key->key, key->key_len) && put(b, "\":", 2) &&
           put(b, value->text, value->len);
}

struct column {
    struct json_item member;
    struct json_scan at;
};

static void name_column(const struct json_item *m, uint32_t i, char out[96])
{
    if (m->key)
        snprintf(out, 96, "argument '%.*s'", (int)MIN(m->key_len, (size_t)64), m->key);
    else
        snprintf(out, 96, "the argument at position %u", i);
}

static int no_column(const struct splitting *p, const struct json_item *m, uint32_t i, struct err *err)
{
    char what[96];
    name_column(m, i, what);
    return err_set(err, ERR_INVALID, "%s(): %s must be a list with one element per %s, because the call is %s",
                   p->in->call.method, what, p->in->planned ? "piece" : "rank", mode_dispatch_name(p->in->dispatch));
}

static int read_columns(const struct splitting *p, struct json_scan *s, struct column *columns, uint32_t *ret_n,
                        struct err *err)
{
    struct json_item item;
    uint32_t n = 0;
    int got;
    while ((got = json_scan_next(s, &item)) > 0) {
        if (n == COLUMNS_MAX)
            return err_set(err, ERR_INVALID, "%s() has more than %d arguments", p->in->call.method, COLUMNS_MAX);
        columns[n].member = item;
        if (!json_scan_begin(&columns[n].at, item.text, item.len) || columns[n].at.close != ']')
            return no_column(p, &item, n, err);
        n++;
    }
    *ret_n = n;
    return got < 0 ? no_json(p, s, err) : 0;
}

// Writes the element of each column for piece i, as one object or list.
static int put_row(const struct splitting *p, uint32_t i, struct column *columns, uint32_t n, struct err *err)
{
    struct blob *b = p->s->made;
    size_t begin = b->len, first = p->s->n_parts;
    bool by_position = n && !columns[0].member.key;
    for (uint32_t k = 0; k < n; k++) {
        char what[96];
        struct json_item value;
        const struct json_item *m = &columns[k].member;
        int got = json_scan_next(&columns[k].at, &value);
        name_column(m, k, what);
        if (got < 0)
            return no_json(p, &columns[k].at, err);
        if (got == 0)
            return wrong_count(p, what, i, false, err);
        if (i == p->s->n - 1 &&
            json_scan_next(&(struct json_scan){columns[k].at.p, columns[k].at.end, ']', columns[k].at.state},
                           &(struct json_item){0}) != 0)
            return wrong_count(p, what, p->s->n, true, err);
        if (!put_member(b, k == 0, m, &value))
            return no_room(p, err);
    }
    const char *end = by_position ? "]" : n ? "}" : "{}";
    if (!put(b, end, strlen(end)) || !add_part(p->s, b, begin, b->len - begin))
        return no_room(p, err);
    piece_ends(p->s, i, first);
    return 0;
}

static int split_columns(const struct splitting *p, struct json_scan *s, struct err *err)
{
    struct column columns[COLUMNS_MAX];
    uint32_t n = 0;
    int r = read_columns(p, s, columns, &n, err);
    for (uint32_t i = 0; i < p->s->n && r == 0; i++)
        r = put_row(p, i, columns, n, err);
    return r;
}

static int split_elements(const struct splitting *p, struct err *err)
{
    const struct split_input *in = p->in;
    const char *args = p->parts->args;
    size_t len = p->parts->args_len;
    struct json_scan s;
    if (body_list_is(args, len))
        return split_bodies(p, err);
    if (batch_is_safetensors(args, len))
        return err_set(err, ERR_INVALID, "%s(): one batch, but the call is %s, which needs arguments for each piece",
                       in->call.method, mode_dispatch_name(in->dispatch));
    if (!json_scan_begin(&s, args, len))
        return err_set(err, ERR_INVALID,
                       "%s(): a call that is %s needs a list of arguments, one element for each of the %u %s of %s",
                       in->call.method, mode_dispatch_name(in->dispatch), p->s->n, in->planned ? "pieces" : "ranks",
                       in->group);
    return s.close == ']' && !in->positional ? split_list(p, &s, err) : split_columns(p, &s, err);
}

// Rows

static int add_piece(const struct splitting *p, uint32_t i, const struct scatter *doc, struct err *err)
{
    struct split *s = p->s;
    size_t first = s->n_parts, base = s->made->len;
    if (doc->own.len > SPLIT_MADE_MAX - base)
        return split_too_many_heads(p->in->call.method, s->n, err);
    if (!put(s->made, doc->own.data, doc->own.len))
        return no_room(p, err);
    for (size_t k = 0; k < doc->n_parts; k++) {
        const struct scatter_part *part = &doc->parts[k];
        bool own = part->source == SCATTER_OWN;
        if (!add_part(s, own ? s->made : s->body, (own ? base : p->args_at) + part->offset, part->len))
            return no_room(p, err);
    }
    piece_ends(s, i, first);
    return 0;
}

static int split_pieces(const struct splitting *p, const struct batch *b, struct err *err)
{
    int r = 0;
    for (uint32_t i = 0; i < p->s->n && r == 0; i++) {
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(scatter_done) struct scatter doc = SCATTER_INIT;
        r = batch_slice(b, i * p->s->each, p->s->each, &a, &doc, err);
        if (r == 0)
            r = add_piece(p, i, &doc, err);
    }
    return r;
}

static int split_rows(const struct splitting *p, struct err *err)
{
    const struct split_input *in = p->in;
    struct split *s = p->s;
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct batch b;
    int r = 0;
    if (body_list_is(p->parts->args, p->parts->args_len))
        r = err_set(err, ERR_INVALID, "a list of batches; dispatch mode %s takes one and splits it",
                    mode_dispatch_name(in->dispatch));
    if (r == 0)
        r = batch_read(p->parts->args, p->parts->args_len, &a, &b, err);
    if (r == 0)
        r = batch_check_parts(&b, s->n, err);
    if (r == 0)
        r = batch_pieces(b.rows, s->n, in->pad, &s->each, &s->added, err);
    if (r < 0)
        return err_wrap(err, "%s()", in->call.method);
    s->rows = b.rows;
    return split_pieces(p, &b, err);
}

// Parts of a reference

// Piece i gets `each` parts of the reference.
static int add_ref_parts(const struct splitting *p, const struct ref *ref, uint32_t i, uint32_t each, struct err *err)
{
    struct split *s = p->s;
    _cleanup_(buf_done) struct buf text = BUF_INIT(16 * REF_ARGS_MAX);
    size_t base = s->made->len, first = s->n_parts;
    int r = reference_write(&p->in->call, ref, i * each, each, &text, err);
    if (r == 0 && (!put(s->made, text.data, text.len) || !add_part(s, s->made, base, text.len)))
        r = no_room(p, err);
    piece_ends(s, i, first);
    return r;
}

// The parts are on their ranks, and only these ranks see rows.
static int wrong_parts(const struct split_input *in, const struct ref *ref, struct err *err)
{
    bool joined = ref->form == REF_JOINED;
    return err_set(
        err, ERR_INVALID,
        "%s(): the reference has %u part%s, the call has %u pieces, and Cadre does not split parts. Either produce it "
        "in %u pieces%s (with a split), %sor call object.get and pass the value, which the proxy splits",
        in->call.method, ref->n, ref->n == 1 ? "" : "s", in->n, in->n, joined ? " or a multiple" : "",
        joined || ref->n == 1 ? "or pass it to a ONE_TO_ALL method, where every rank gets all of it, " : "");
}

static int split_ref(const struct splitting *p, struct err *err)
{
    const struct split_input *in = p->in;
    struct ref_found f;
    struct ref ref;
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    int r = 0;
    if (in->pad)
        r = err_set(err, ERR_INVALID, "%s(): the parts of a reference are passed on unchanged and cannot be padded",
                    in->call.method);
    if (r == 0 && ref_is(p->parts->args, p->parts->args_len, &f))
        r = ref_parse(f.text, f.text_len, &a, &ref, err);
    if (r == 0 && ref.n != p->s->n && (ref.form != REF_JOINED || ref.n % p->s->n))
        r = wrong_parts(in, &ref, err);
    for (uint32_t i = 0; r == 0 && i < p->s->n; i++)
        r = add_ref_parts(p, &ref, i, ref.n / p->s->n, err);
    return r;
}

int split_make(const struct split_input *in, const struct call_body *body, const struct record_call *parts,
               struct split *ret, struct err *err)
{
    *ret = (struct split){.n = in->n, .quota = in->quota};
    struct splitting p = {.in = in, .parts = parts, .s = ret};
    ret->pieces = xcalloc(ret->n, sizeof *ret->pieces);
    ret->body = body_keep(body, in->quota);
    ret->made = blob_new(0, in->quota);
    if (!ret->body || !ret->made)
        return no_room(&p, err);
    ret->head = body_part(body, ret->body);
    ret->head.len -= parts->args_len;
    p.args_at = ret->head.offset + ret->head.len;
    if (in->ref)
        return split_ref(&p, err);
    return in->rows ? split_rows(&p, err) : split_elements(&p, err);
}

void split_done(struct split *s)
{
    quota_refund(s->quota, s->charged);
    blob_unref(s->body);
    blob_unref(s->made);
    free(s->parts);
    free(s->pieces);
}
