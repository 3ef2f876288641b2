// SPDX-License-Identifier: Apache-2.0
// Batches as methods see them, what methods may return, and what a class may publish in its constructor.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/ws/pool.h"
#include "worker/host/description.h"
#include "worker/host/host_call_run.h"
#include "worker/host/host_process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;

static int teardown(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

// A document with rows of "a" (F64, n) and "b" (U8, n x 2), a column "p" and metadata.
static struct buf document(size_t n)
{
    const uint64_t shapes[][2] = {{n, 0}, {n, 2}};
    struct safetensors_tensor t[] = {{.name = "a", .dtype = SAFETENSORS_F64, .n_dims = 1, .shape = shapes[0]},
                                     {.name = "b", .dtype = SAFETENSORS_U8, .n_dims = 2, .shape = shapes[1]}};
    struct buf p = BUF_INIT(4096), out = BUF_INIT(65536);
    struct scatter head = SCATTER_INIT;
    struct err err = ERR_INIT;
    buf_puts(&p, "{\"q\\\"\":[");
    for (size_t i = 0; i < n; i++)
        buf_puts(&p, i ? ",[]" : "[]");
    buf_puts(&p, "],\"p\": [");
    for (size_t i = 0; i < n; i++)
        buf_printf(&p, "%s\"row %zu\"", i ? ", " : "", i);
    buf_puts(&p, "]}");
    const struct safetensors_meta meta[] = {{BATCH_COLUMNS, buf_str(&p)}, {BATCH_META, "{\"t\":0.7,\"n\":null}"}};
    assert_int_equal(safetensors_write_head(&head, t, 2, meta, 2, &err), 0);
    buf_append(&out, head.own.data, head.own.len);
    for (size_t i = 0; i < n; i++)
        buf_append(&out, &(double){(double)i}, sizeof(double));
    for (size_t i = 0; i < 2 * n; i++)
        buf_putc(&out, (char)i);
    scatter_done(&head);
    buf_done(&p);
    return out;
}

// Runs a function as a method. The batch begins `shift` bytes after an aligned address. Returns the body of the answer.
// *ok: it is a RESULT.
static struct buf run(cadre_result (*fn)(void *, cadre_call *), const struct buf *args, size_t shift, bool *ok)
{
    struct cadre_call c;
    struct buf out = BUF_INIT(1 << 20);
    const cadre_method m = {"foo", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, fn, NULL};
    char *body = xmalloc(args->len + shift);
    memcpy(body + shift, args->data, args->len);
    call_init(&c, body + shift, args->len);
    call_run(&c, &m, NULL);
    *ok = call_encode(&c, &out);
    call_done(&c);
    free(body);
    return out;
}

static void answers(cadre_result (*fn)(void *, cadre_call *), const struct buf *args, const char *want)
{
    bool ok;
    struct buf out = run(fn, args, 0, &ok);
    if (!strstr(buf_str(&out), want))
        fail_msg("%s\ncame, not %s", buf_str(&out), want);
    buf_done(&out);
}

static cadre_result look(void *self, cadre_call *call)
{
    cadre_tensor a, b, t;
    const char *json;
    size_t len;
    (void)self;
    assert_int_equal(cadre_is_batch(call), 1);
    assert_int_equal(cadre_rows(call), 3);
    assert_int_equal(cadre_arg_tensor(call, "a", &a), CADRE_OK);
    assert_string_equal(a.dtype, "F64");
    assert_int_equal(a.n_dims, 1);
    assert_int_equal(a.shape[0], 3);
    assert_int_equal(a.len, 3 * sizeof(double));
    assert_int_equal((uintptr_t)a.data % 8, 0);
    assert_true(((const double *)a.data)[2] == 2.0);
    assert_int_equal(cadre_arg_tensor(call, "b", &b), CADRE_OK);
    assert_int_equal(b.shape[1], 2);
    assert_int_equal(((const unsigned char *)b.data)[5], 5);
    assert_int_equal(cadre_tensor_at(call, 1, &t), CADRE_OK);
    assert_int_equal(cadre_tensor_at(call, 2, &t), CADRE_NOT_FOUND);
    assert_int_equal(cadre_arg_json(call, 0, "p", &json, &len), CADRE_OK);
    assert_int_equal(len, strlen("[\"row 0\", \"row 1\", \"row 2\"]"));
    assert_memory_equal(json, "[\"row 0\", \"row 1\", \"row 2\"]", len);
    const char *name;
    assert_int_equal(cadre_column_at(call, 0, &name, &json, &len), CADRE_OK);
    assert_string_equal(name, "q\"");
    assert_memory_equal(json, "[[],[],[]]", len);
    assert_int_equal(cadre_column_at(call, 1, &name, &json, &len), CADRE_OK);
    assert_string_equal(name, "p");
    assert_int_equal(cadre_column_at(call, 2, &name, &json, &len), CADRE_NOT_FOUND);
    assert_int_equal(cadre_arg_json(call, 0, "q\"", &json, &len), CADRE_OK);
    assert_int_equal(len, strlen("[[],[],[]]"));
    assert_int_equal(cadre_arg_meta(call, "t", &json, &len), CADRE_OK);
    assert_int_equal(len, 3);
    assert_memory_equal(json, "0.7", 3);
    assert_int_equal(cadre_arg_meta(call, "n", &json, &len), CADRE_NOT_FOUND);
    assert_int_equal(cadre_arg_json(call, 0, "q", &json, &len), CADRE_NOT_FOUND);
    return cadre_arg_tensor(call, "c", &t);
}

static void a_method_sees_tensors_columns_and_metadata(void **state)
{
    (void)state;
    struct buf args = document(3);
    for (size_t shift = 0; shift < 8; shift++) { // the values are aligned wherever the document begins
        bool ok;
        struct buf out = run(look, &args, shift, &ok);
        assert_false(ok);
        assert_string_equal(buf_str(&out), "{\"code\":\"INVALID\",\"message\":\"foo() needs 'c', which the batch that "
                                           "it was called with does not have\"}");
        buf_done(&out);
    }
    args.len--;
    answers(look, &args, "\"INVALID\",\"message\":\"foo(): safetensors: a document of");
    buf_done(&args);
}

static cadre_result number_wanted(void *self, cadre_call *call)
{
    double x;
    (void)self;
    return cadre_arg_double(call, 0, "a", &x);
}

static cadre_result batch_wanted(void *self, cadre_call *call)
{
    cadre_tensor t;
    (void)self;
    assert_int_equal(cadre_is_batch(call), 0);
    return cadre_arg_tensor(call, "a", &t);
}

static void who_wants_the_other_form_is_told(void **state)
{
    (void)state;
    struct buf args = document(1), json = BUF_INIT(64);
    buf_puts(&json, "{\"a\":[1]}");
    answers(number_wanted, &args, "foo() needs 'a', which the batch");
    answers(batch_wanted, &json, "foo() needs a batch with 'a', it was called with JSON");
    buf_done(&args);
    buf_done(&json);
}

static const uint64_t two[] = {2, 1}, three[] = {3};

static cadre_result return_batch(void *self, cadre_call *call)
{
    static const unsigned char bytes[] = {1, 2};
    static const double numbers[] = {0.5, 1.5};
    (void)self;
    cadre_return_int64(call, 7); // the last result counts
    assert_int_equal(cadre_return_tensor(call, &(cadre_tensor){"b", "U8", two, 2, bytes, 2}), CADRE_OK);
    assert_int_equal(cadre_return_tensor(call, &(cadre_tensor){"x", "F64", two, 1, numbers, 16}), CADRE_OK);
    assert_int_equal(cadre_return_column(call, "p", "[\"c\", null]", 11), CADRE_OK);
    return cadre_return_meta(call, "metrics", "{\"loss\":1}", 10);
}

static void a_method_returns_a_batch_piece_by_piece(void **state)
{
    (void)state;
    struct buf args = document(0);
    struct batch b;
    struct err err = ERR_INIT;
    bool ok;
    struct buf out = run(return_batch, &args, 0, &ok);
    assert_true(ok);
    assert_int_equal(batch_read(out.data, out.len, &arena, &b, &err), 0);
    assert_int_equal(b.rows, 2);
    assert_int_equal(b.doc.n_tensors, 2);
    const struct safetensors_tensor *x = safetensors_find(&b.doc, "x"), *bytes = safetensors_find(&b.doc, "b");
    assert_int_equal(x->offset % 8, 0);
    assert_memory_equal(out.data + x->offset, ((const double[]){0.5, 1.5}), 16);
    assert_memory_equal(out.data + bytes->offset, "\1\2", 2);
    assert_string_equal(safetensors_meta_get(&b.doc, BATCH_COLUMNS), "{\"p\":[\"c\", null]}");
    assert_string_equal(safetensors_meta_get(&b.doc, BATCH_META), "{\"metrics\":{\"loss\":1}}");
    buf_done(&out);
    buf_done(&args);
}

static cadre_result return_blank(void *self, cadre_call *call)
{
    const cadre_tensor tensors[] = {{.name = "b", .dtype = "U8", .shape = two, .n_dims = 2},
                                    {.name = "x", .dtype = "F64", .shape = two, .n_dims = 1}};
    void *data[2];
    (void)self;
    cadre_return_int64(call, 7);
    cadre_return_column(call, "gone", "[1]", 3);
    assert_int_equal(cadre_return_blank(call, tensors, 2, "{\"p\":[\"c\", null]}", "{\"metrics\":{\"loss\":1}}", data),
                     CADRE_OK);
    assert_int_equal((uintptr_t)data[1] % 8, 0);
    memcpy(data[0], "\1\2", 2);
    memcpy(data[1], (const double[]){0.5, 1.5}, 16);
    return CADRE_OK;
}

static void a_method_writes_a_batch_where_it_is_sent_from(void **state)
{
    (void)state;
    struct buf args = document(0);
    bool ok;
    struct buf pieces = run(return_batch, &args, 0, &ok), out = run(return_blank, &args, 0, &ok);
    assert_true(ok);
    assert_int_equal(out.len, pieces.len); // the same document
    assert_memory_equal(out.data, pieces.data, out.len);
    buf_done(&pieces);
    buf_done(&out);
    buf_done(&args);
}

static const struct bad {
    cadre_tensor t;
    const char *why;
} bad[] = {
    {{"x", "F128", two, 1, "", 2}, "dtype F128, which safetensors does not have"},
    {{"x", "U8", two, 1, "ab", 3}, "has 3 bytes of data, its shape and dtype need 2"},
    {{"x", "U8", two, 1, NULL, 2}, "has 0 bytes of data"},
    {{"x", "U8", two, 0, "a", 1}, "a shape of at least one dimension"},
    {{"", "U8", two, 1, "ab", 2}, "a tensor needs a name"},
    {{"x", "U8", (const uint64_t[]){UINT64_MAX}, 1, "ab", 2}, "larger than any memory"},
    {{"x", "U8", (const uint64_t[]){3ULL << 30}, 1, "ab", 3ULL << 30}, "more than"},
};
static size_t now;

static cadre_result return_bad(void *self, cadre_call *call)
{
    (void)self;
    return cadre_return_tensor(call, &bad[now].t);
}

static cadre_result return_ragged(void *self, cadre_call *call)
{
    (void)self;
    cadre_return_tensor(call, &(cadre_tensor){"x", "U8", two, 2, "ab", 2});
    return cadre_return_tensor(call, &(cadre_tensor){"y", "U8", three, 1, "abc", 3});
}

static cadre_result return_blank_ragged(void *self, cadre_call *call)
{
    const cadre_tensor tensors[] = {{.name = "x", .dtype = "U8", .shape = two, .n_dims = 2},
                                    {.name = "y", .dtype = "U8", .shape = three, .n_dims = 1}};
    void *data[2];
    (void)self;
    return cadre_return_blank(call, tensors, 2, NULL, NULL, data);
}

static cadre_result return_blank_huge(void *self, cadre_call *call)
{
    static const uint64_t shape[] = {3ULL << 30};
    const cadre_tensor t = {.name = "x", .dtype = "U8", .shape = shape, .n_dims = 1};
    void *data;
    (void)self;
    return cadre_return_blank(call, &t, 1, NULL, NULL, &data);
}

static cadre_result return_twice(void *self, cadre_call *call)
{
    (void)self;
    cadre_return_tensor(call, &(cadre_tensor){"x", "U8", two, 2, "ab", 2});
    return cadre_return_tensor(call, &(cadre_tensor){"x", "U8", two, 2, "ab", 2});
}

static cadre_result return_columns_twice(void *self, cadre_call *call)
{
    (void)self;
    cadre_return_column(call, "p", "[1]", 3);
    return cadre_return_column(call, "p", "[1]", 3);
}

static cadre_result return_no_column(void *self, cadre_call *call)
{
    (void)self;
    return cadre_return_column(call, "p", "{}", 2);
}

static cadre_result return_no_json(void *self, cadre_call *call)
{
    (void)self;
    return cadre_return_meta(call, "k", "{", 1);
}

static cadre_result return_no_document(void *self, cadre_call *call)
{
    (void)self;
    return cadre_return_batch(call, "[1]", 3);
}

static cadre_result return_long(void *self, cadre_call *call)
{
    static const uint64_t shape[] = {2, 200 << 10};
    static char values[400 << 10];
    (void)self;
    memset(values, 'v', sizeof values);
    return cadre_return_tensor(call, &(cadre_tensor){"x", "U8", shape, 2, values, sizeof values});
}

static cadre_result return_long_blank(void *self, cadre_call *call)
{
    static const uint64_t shape[] = {2, 200 << 10};
    const cadre_tensor t = {.name = "x", .dtype = "U8", .shape = shape, .n_dims = 2};
    void *data;
    (void)self;
    assert_int_equal(cadre_return_blank(call, &t, 1, NULL, NULL, &data), CADRE_OK);
    assert_in_range((uintptr_t)data, (uintptr_t)pool_base(call->pool), (uintptr_t)pool_base(call->pool) + 512);
    memset(data, 'v', 400 << 10);
    return CADRE_OK;
}

static void is_written_into_the_memory_that_is_shared(cadre_result (*returns)(void *, cadre_call *))
{
    static struct cadre_call c;
    const cadre_method m = {.name = "foo", .run = returns};
    struct err err = ERR_INIT;
    struct arena a = ARENA_INIT;
    struct batch b;
    size_t len;
    struct pool *pool = pool_new(16 * POOL_STEP, &err);
    assert_non_null(pool);
    call_init(&c, "[]", 2);
    c.pool = pool;
    call_run(&c, &m, NULL);
    char *shared = call_take_shared(&c, &len);
    assert_non_null(shared);
    assert_int_equal(batch_read(shared, len, &a, &b, &err), 0);
    assert_int_equal(b.rows, 2);
    assert_int_equal(shared[b.doc.tensors[0].offset], 'v');
    assert_int_equal(shared[len - 1], 'v');
    call_done(&c);
    arena_done(&a);
    pool_give(pool, shared);
    assert_ptr_equal(pool_take(pool, 16 * POOL_STEP), pool_base(pool)); // nothing else is taken
    pool_free(pool);
}

static void a_long_batch_is_written_into_the_memory_that_is_shared(void **state)
{
    (void)state;
    is_written_into_the_memory_that_is_shared(return_long);
    is_written_into_the_memory_that_is_shared(return_long_blank);
}

// The lengths together, or with the head, do not fit into a size_t.
static cadre_result return_blank_endless(void *self, cadre_call *call)
{
    static const uint64_t shape[] = {1, ((uint64_t)1 << 61) - 1};
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    cadre_tensor t[ARRAY_LEN(names)];
    void *data[ARRAY_LEN(names)];
    (void)self;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        t[i] = (cadre_tensor){.name = names[i], .dtype = "U8", .shape = shape, .n_dims = 2};
    return cadre_return_blank(call, t, ARRAY_LEN(names), NULL, NULL, data);
}

static void what_is_no_batch_is_not_returned(void **state)
{
    (void)state;
    struct buf args = document(1);
    for (now = 0; now < ARRAY_LEN(bad); now++)
        answers(return_bad, &args, bad[now].why);
    answers(return_ragged, &args, "foo() returns no batch: 'y' has 3 rows, but 'x' has 2");
    answers(return_blank_ragged, &args, "foo() returns what is not a batch: 'y' has 3 rows, but 'x' has 2");
    answers(return_blank_huge, &args, "bytes are too many");
    answers(return_blank_endless, &args, "together larger than any memory");
    answers(return_twice, &args, "there are two tensors 'x'");
    answers(return_columns_twice, &args, "'p' is returned twice");
    answers(return_no_column, &args, "a column is a list with one value per row, not a JSON object");
    answers(return_no_json, &args, "'k': not valid JSON");
    answers(return_no_document, &args, "no safetensors document; cadre_return_json() is for JSON");
    buf_done(&args);
}

static cadre_result return_what_came(void *self, cadre_call *call)
{
    size_t len;
    (void)self;
    const char *args = cadre_args(call, &len);
    return cadre_return_batch(call, args, len);
}

static void a_whole_document_is_returned_as_it_is(void **state)
{
    (void)state;
    struct buf args = document(4);
    bool ok;
    struct buf out = run(return_what_came, &args, 3, &ok);
    assert_true(ok);
    assert_int_equal(out.len, args.len);
    assert_memory_equal(out.data, args.data, args.len);
    buf_done(&out);
    buf_done(&args);
}

// Publishing

static cadre_result nothing(void *self, cadre_call *call)
{
    (void)self, (void)call;
    return CADRE_OK;
}

static const cadre_method methods[] = {{"plain", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, nothing, NULL},
                                       {"custom", CADRE_SPLIT, CADRE_EXECUTE_ALL, nothing, NULL},
                                       {"train", CADRE_3D_PROTO, CADRE_EXECUTE_ANY, nothing, "trains"}};
static const cadre_class class = {"Model", NULL, NULL, methods, 3};

static void describe(struct json_writer *text, const cadre_module_info *info, const struct cadre_worker *w)
{
    struct role role = {.class = &class, .worker = *w};
    description_write(text, &(struct module){.info = info}, &(struct roles){.at = &role, .n = 1});
}

static void a_class_publishes_rules_and_meshes(void **state)
{
    (void)state;
    static const struct json being_created = {0};
    struct cadre_worker w = {.world_size = 4, .init = &being_created, .class = &class};
    static const char *const dims[] = {"dp", "tp"};
    static const uint32_t sizes[] = {2, 2}, wrong[] = {2, 3};
    struct json_writer text = WRITER_INIT;
    const cadre_module_info info = {CADRE_ABI, "m", &class, 1};
    assert_int_equal(cadre_method_rule(&w, "custom", "{\"index\":[0,1,0,1]}", NULL), CADRE_OK);
    assert_int_equal(cadre_method_rule(&w, "train", "{\"mesh\":\"t\"}", "{\"join\":false}"), CADRE_OK);
    assert_int_equal(cadre_publish_mesh(&w, "t", dims, sizes, 2), CADRE_OK);
    writer_object(&text, NULL);
    describe(&text, &info, &w);
    writer_object_end(&text);
    assert_string_equal(
        buf_str(&text.buf),
        "{\"module\":\"m\",\"class\":\"Model\",\"methods\":[{\"name\":\"plain\",\"dispatch\":\"ONE_TO_ALL\","
        "\"execute\":\"ALL\"},{\"name\":\"custom\",\"dispatch\":\"SPLIT\",\"execute\":\"ALL\",\"split\":{\"index\":[0,"
        "1,0,1]}},{\"name\":\"train\",\"dispatch\":\"3D_PROTO\",\"execute\":\"ANY\",\"split\":{\"mesh\":\"t\"},"
        "\"collect\":{\"join\":false},\"doc\":\"trains\"}],\"meshes\":[{\"name\":\"t\",\"dims\":[{\"name\":\"dp\","
        "\"size\":2},{\"name\":\"tp\",\"size\":2}]}]}");
    writer_done(&text);

    assert_int_equal(cadre_publish_mesh(&w, "t", dims, sizes, 2), CADRE_INVALID_ARGUMENT);
    assert_string_equal(w.message, "mesh 't' is published twice");
    assert_int_equal(cadre_publish_mesh(&w, "u", dims, wrong, 2), CADRE_INVALID_ARGUMENT);
    assert_string_equal(w.message, "mesh 'u' is for 6 ranks, the group has 4");
    assert_int_equal(cadre_publish_mesh(&w, "", dims, sizes, 2), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_method_rule(&w, "custom", NULL, NULL), CADRE_INVALID_ARGUMENT);
    assert_string_equal(w.message, "rule of custom(): it has one already");
    assert_int_equal(cadre_method_rule(&w, "plain", "{}", NULL), CADRE_INVALID_ARGUMENT);
    assert_string_equal(w.message, "rule of plain(): only methods of CADRE_SPLIT and the 3D modes have one");
    assert_int_equal(cadre_method_rule(&w, "none", "{}", NULL), CADRE_INVALID_ARGUMENT);
    published_done(&w.published);
    assert_int_equal(cadre_method_rule(&w, "custom", "{\"x\":1}", NULL), CADRE_INVALID_ARGUMENT);
    assert_string_equal(w.message, "rule of custom(): split has no member 'x'");
    assert_int_equal(cadre_method_rule(&w, "custom", "{", NULL), CADRE_INVALID_ARGUMENT);
    w.init = NULL;
    assert_int_equal(cadre_method_rule(&w, "custom", "{}", NULL), CADRE_INVALID_ARGUMENT);
    assert_string_equal(w.message, "rules, meshes and concurrency groups can be published during create() only");
    published_done(&w.published);
}

static void refuses(struct cadre_worker *w, const char *name, unsigned limit, const char *method, const char *says)
{
    assert_int_equal(cadre_concurrency_group(w, name, limit, &method, 1), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(w->message, says));
}

static void a_class_has_concurrency_groups(void **state)
{
    (void)state;
    static const struct json being_created = {0};
    static const char *const methods_of_it[] = {"plain", "train"};
    struct cadre_worker w = {.world_size = 4, .init = &being_created, .class = &class};
    assert_int_equal(cadre_concurrency_group(&w, "io", 2, methods_of_it, 2), CADRE_OK);
    refuses(&w, "io", 2, "custom", "concurrency group 'io' is there twice");
    refuses(&w, "", 2, "custom", "a concurrency group needs a name");
    refuses(&w, "a", 0, "custom", "concurrency group 'a' has a limit of 0; 1 to 64 are possible");
    refuses(&w, "a", 65, "custom", "has a limit of 65");
    refuses(&w, "a", 1, "plain", "plain() is in concurrency group 'io' already");
    refuses(&w, "b", 1, "none", "concurrency group 'b': class Model has no method none");
    w.published.groups[0].lane = 7;
    assert_int_equal(published_lane(&w.published, "train"), 7);
    assert_int_equal(published_lane(&w.published, "custom"), 0);
    w.init = NULL;
    refuses(&w, "c", 1, "custom", "during create() only");
    published_done(&w.published);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_class_has_concurrency_groups),
        cmocka_unit_test_teardown(a_method_sees_tensors_columns_and_metadata, teardown),
        cmocka_unit_test_teardown(who_wants_the_other_form_is_told, teardown),
        cmocka_unit_test_teardown(a_method_returns_a_batch_piece_by_piece, teardown),
        cmocka_unit_test_teardown(a_method_writes_a_batch_where_it_is_sent_from, teardown),
        cmocka_unit_test_teardown(a_long_batch_is_written_into_the_memory_that_is_shared, teardown),
        cmocka_unit_test_teardown(what_is_no_batch_is_not_returned, teardown),
        cmocka_unit_test_teardown(a_whole_document_is_returned_as_it_is, teardown),
        cmocka_unit_test_teardown(a_class_publishes_rules_and_meshes, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
