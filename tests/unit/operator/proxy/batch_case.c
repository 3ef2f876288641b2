// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/proxy/batch_case.h"

#include "common/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void batch_case_dial(struct batch_case *w, uint32_t rank, const char *hello)
{
    struct err err = ERR_INIT;
    if (worker_dial_as(&w->f, &w->workers[rank], rank, 1, hello, &err) < 0)
        fail_msg("rank %u: %s", rank, err.msg);
}

struct batch_case *batch_case_with(uint32_t world, const struct mesh *meshes, size_t n)
{
    struct batch_case *w = xcalloc(1, sizeof *w);
    w->world = world;
    fixture_init(&w->f, NULL);
    fixture_meshes(&w->f, world, meshes, n);
    client_open(&w->f, &w->c, "llama");
    return w;
}

struct mesh mesh_of(const char *text, struct arena *a)
{
    struct mesh mesh = {0};
    const char *p = strchr(text, ':');
    struct mesh_dim *dims = arena_array(a, MESH_DIMS_MAX, sizeof *dims);
    mesh.name = arena_strndup(a, text, (size_t)(p - text));
    for (p++; *p == ' ';) {
        size_t len = strcspn(++p, "0123456789");
        dims[mesh.n_dims].name = arena_strndup(a, p, len);
        dims[mesh.n_dims++].size = (uint32_t)strtoul(p + len, (char **)&p, 10);
    }
    mesh.dims = dims;
    return mesh;
}

struct batch_case *batch_case_new(uint32_t world, const char *first, const char *second)
{
    struct arena a = ARENA_INIT;
    struct mesh meshes[2];
    size_t n = 0;
    if (first)
        meshes[n++] = mesh_of(first, &a);
    if (second)
        meshes[n++] = mesh_of(second, &a);
    struct batch_case *w = batch_case_with(world, meshes, n);
    arena_done(&a); // the caller has copied them
    for (uint32_t i = 0; i < world; i++)
        batch_case_dial(w, i, BATCH_CASE_HELLO "}");
    return w;
}

void batch_case_free(struct batch_case *w)
{
    client_close(&w->c);
    for (uint32_t i = 0; i < w->world; i++)
        worker_hang_up(&w->f, &w->workers[i]);
    fixture_done(&w->f);
    arena_done(&w->memory);
    free(w);
}

struct body batch_of(const int64_t *values, size_t n, bool tensor, const char *columns, const char *meta,
                     struct arena *a)
{
    struct buf text = BUF_INIT(1 << 20);
    if (tensor) {
        const uint64_t shape = n;
        struct safetensors_tensor t = {.name = "a", .dtype = SAFETENSORS_I64, .n_dims = 1, .shape = &shape};
        struct safetensors_meta m[2];
        struct scatter s;
        struct err err = ERR_INIT;
        size_t n_meta = 0;
        if (columns)
            m[n_meta++] = (struct safetensors_meta){BATCH_COLUMNS, columns};
        if (meta)
            m[n_meta++] = (struct safetensors_meta){BATCH_META, meta};
        s = SCATTER_INIT;
        assert_int_equal(safetensors_write_head(&s, &t, 1, m, n_meta, &err), 0);
        buf_append(&text, s.own.data, s.own.len);
        buf_append(&text, values, n * sizeof *values);
        scatter_done(&s);
    } else {
        buf_puts(&text, "{\"a\":[");
        for (size_t i = 0; i < n; i++)
            buf_printf(&text, "%s%" PRId64, i ? "," : "", values[i]);
        buf_puts(&text, "]}");
    }
    struct body b = {arena_memdup(a, buf_str(&text), text.len + 1), text.len};
    buf_done(&text);
    return b;
}

size_t values_of(const char *data, size_t len, int64_t *values, struct arena *a)
{
    struct batch b;
    struct err err = ERR_INIT;
    if (batch_read(data, len, a, &b, &err) < 0)
        fail_msg("%s: %.*s", err.msg, (int)MIN(len, (size_t)200), data);
    const struct safetensors_tensor *t = b.json ? NULL : safetensors_find(&b.doc, "a");
    const struct batch_column *c = b.json ? batch_column(&b, "a") : NULL;
    assert_true(t || c);
    assert_in_range(b.rows, 0, ROWS_MAX);
    if (t)
        memcpy(values, data + t->offset, t->len);
    for (size_t i = 0; !t && i < b.rows; i++)
        values[i] = strtoll(data + batch_cell(c, i)->begin, NULL, 10);
    return b.rows;
}

void batch_case_sends(struct batch_case *w, const struct mode *m, const struct body *args)
{
    struct err err = ERR_INIT;
    char *head = arena_printf(&w->memory, "{\"method\":\"%s\"%s}", m->method ? m->method : "f", m->more ? m->more : "");
    if (client_send(&w->c,
                    &(struct call_text){.id = ++w->id,
                                        .rank = RECORD_GROUP,
                                        .dispatch = m->dispatch,
                                        .execute = m->execute,
                                        .head = head,
                                        .args = args->data,
                                        .args_len = args->len},
                    &err) < 0)
        fail_msg("%s", err.msg);
    fixture_turns(&w->f);
}

struct body text_body(const char *text)
{
    return (struct body){(char *)(uintptr_t)text, strlen(text)};
}

uint32_t batch_case_takes(struct batch_case *w, uint32_t rank, struct body *ret)
{
    struct wire_record *r = wire_next(&w->workers[rank].wire);
    struct record_call call;
    struct err err = ERR_INIT;
    if (!r)
        return 0;
    assert_int_equal(r->h.type, RECORD_CALL);
    w->quiet[rank] = r->h.flags & RECORD_QUIET;
    assert_int_equal(record_call_decode(r->body, r->len, &call, &err), 0);
    *ret = (struct body){arena_memdup(&w->memory, call.args, call.args_len + 1), call.args_len};
    uint32_t id = r->h.call;
    free(r);
    return id;
}

void batch_case_says(struct batch_case *w, uint32_t rank, uint32_t id, const struct body *b)
{
    struct err err = ERR_INIT;
    if (worker_answer_bytes(&w->f, &w->workers[rank], id, RECORD_RESULT, b->data, b->len, &err) < 0)
        fail_msg("%s", err.msg);
    fixture_turns(&w->f);
}

struct body batch_case_hears(struct batch_case *w)
{
    struct wire_record *r = wire_next(&w->c.wire);
    // How the call was cut decides whether these are sent.
    while (r && (r->h.type == RECORD_HOLD || r->h.type == RECORD_GO)) {
        free(r);
        r = wire_next(&w->c.wire);
    }
    assert_non_null(r);
    if (r->h.type != RECORD_RESULT)
        fail_msg("%.*s", (int)r->len, r->body);
    assert_int_equal(r->h.call, w->id);
    assert_int_equal(r->h.rank, RECORD_GROUP);
    struct body b = {arena_memdup(&w->memory, r->body, r->len + 1), r->len};
    free(r);
    return b;
}

void batch_case_refused(struct batch_case *w, const struct mode *m, const char *args, const char *code, const char *why)
{
    struct body b = text_body(args);
    batch_case_sends(w, m, &b);
    const char *got = client_hears(&w->c);
    char begin[64];
    snprintf(begin, sizeof begin, "%u ERROR %s ", w->id, code);
    if (!got || !str_starts(got, begin) || !strstr(got, why))
        fail_msg("%s\ncame, not %s... %s", got ? got : "nothing", begin, why);
    for (uint32_t i = 0; i < w->world; i++)
        assert_int_equal(batch_case_takes(w, i, &b), 0);
}

int64_t add_rank(uint32_t rank)
{
    return rank;
}

static void reverse_order(struct batch_case *w, add_fn add, bool tensor)
{
    for (uint32_t rank = w->world; rank-- > 0;) { // in another order than the ranks
        struct body args;
        int64_t values[ROWS_MAX];
        uint32_t id = batch_case_takes(w, rank, &args);
        assert_int_not_equal(id, 0);
        assert_int_equal(batch_is_safetensors(args.data, args.len), tensor);
        size_t n = values_of(args.data, args.len, values, &w->memory);
        for (size_t i = 0; i < n; i++)
            values[i] += add(rank);
        struct body result = batch_of(values, n, tensor, NULL, NULL, &w->memory);
        batch_case_says(w, rank, id, &result);
    }
}

void adds(struct batch_case *w, struct mode m, add_fn add, const int64_t *in, size_t n, const int64_t *want,
          size_t n_want)
{
    for (int tensor = 0; tensor < 2; tensor++) {
        int64_t got[ROWS_MAX];
        struct body args = batch_of(in, n, tensor, NULL, NULL, &w->memory), answer;
        batch_case_sends(w, &m, &args);
        reverse_order(w, add, tensor);
        answer = batch_case_hears(w);
        assert_int_equal(batch_is_safetensors(answer.data, answer.len), tensor);
        assert_int_equal(values_of(answer.data, answer.len, got, &w->memory), n_want);
        for (size_t i = 0; i < n_want; i++)
            assert_int_equal(got[i], want[i]);
    }
}

void lists(struct batch_case *w, struct mode m, const char *args, const char *const *each, const char *const *results,
           const char *want)
{
    struct body b = text_body(args);
    batch_case_sends(w, &m, &b);
    for (uint32_t rank = 0; rank < w->world; rank++) {
        struct body result = text_body(results[rank]);
        uint32_t id = batch_case_takes(w, rank, &b);
        assert_string_equal(b.data, each[rank]);
        batch_case_says(w, rank, id, &result);
    }
    assert_string_equal(batch_case_hears(w).data, want);
}
