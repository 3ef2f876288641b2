// SPDX-License-Identifier: Apache-2.0
// Batches in the client library: written, read, sent and received.
#include "sdk/c/include/cadre/client.h"
#include "tests/unit/sdk/c/sdk_proxy.h"
#include "tests/unit/support/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#define J(literal) ((cadre_client_json){(literal), sizeof(literal) - 1})

struct fixture {
    struct sdk_proxy proxy;
    cadre_client *client;
    cadre_client_error error;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    cadre_client_options o;
    sdk_proxy_init(&f->proxy);
    sdk_proxy_start(&f->proxy, NULL, NULL);
    cadre_client_options_init(&o);
    o.address = f->proxy.url;
    o.ns = "ml";
    o.group = "llama";
    if (cadre_client_open(&o, &f->client, &f->error) != CADRE_CLIENT_OK)
        fail_msg("%s", f->error.message);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    cadre_client_close(f->client);
    sdk_proxy_done(&f->proxy);
    free(f);
    return 0;
}

static cadre_client_request request_of_echo(void)
{
    cadre_client_request r;
    cadre_client_request_init(&r, "echo");
    r.timeout_ms = PATIENCE_MS;
    return r;
}

static void batches_go_and_come_as_they_are(void **state)
{
    struct fixture *f = *state;
    cadre_client_json result, item;
    char *values = calloc(1, 100000), copy[64];
    const cadre_client_tensor t = {
        .name = "a", .dtype = "U8", .shape = {100000}, .n_dims = 1, .data = values, .len = 100000};
    static const char small[] = "\2\0\0\0\0\0\0\0{}";
    void *batch;
    size_t len;
    assert_int_equal(cadre_client_batch_write(&t, 1, NULL, NULL, &batch, &len, &f->error), CADRE_CLIENT_OK);
    cadre_client_request r = request_of_echo();
    r.batch = batch;
    r.batch_len = len;
    r.dispatch = CADRE_CLIENT_SPLIT;
    r.split = "{\"dims\": [\"dp\"]}";
    r.collect = "{\"ranks\":[1]}";
    r.pad = 1;
    assert_int_equal(cadre_client_call(f->client, &r, &result, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(result.len, len);
    assert_memory_equal(result.text, batch, len);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL -1/8/0 {\"method\":\"echo\",\"timeoutMs\":"), 1);
    assert_int_equal(
        sdk_proxy_saw(&f->proxy, ",\"pad\":true,\"split\":{\"dims\": [\"dp\"]},\"collect\":{\"ranks\":[1]}}"), 1);
    free(batch);
    free(values);

    // One for each rank, beside JSON; a short one is copied into the queue.
    const cadre_client_json per_rank[] = {J("[1]"), {small, 10}};
    r = request_of_echo();
    r.per_rank = per_rank;
    r.n_per_rank = 2;
    assert_int_equal(cadre_client_call(f->client, &r, &result, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(cadre_client_content_of(result), CADRE_CLIENT_CONTENT_LIST);
    assert_int_equal(cadre_client_list_next(&result, &item), 1);
    snprintf(copy, sizeof copy, "%.*s", (int)item.len, item.text);
    assert_string_equal(copy, "[1]");
    assert_int_equal(cadre_client_list_next(&result, &item), 1);
    assert_int_equal(item.len, 10);
    assert_memory_equal(item.text, small, 10);
    assert_int_equal(cadre_client_list_next(&result, &item), 0);
}

static void results_that_are_no_json_are_walked_over_too(void **state)
{
    (void)state;
    static const char list[] = "\xff\xff\xff\xff\2\0\0\0"
                               "\3\0\0\0\0\0\0\0[1]\0\0\0\0\0"
                               "\12\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0{}\0\0\0\0\0";
    cadre_client_json l = {list, sizeof list}, item; // with the NUL at its end
    assert_int_equal(cadre_client_content_of(l), CADRE_CLIENT_CONTENT_LIST);
    assert_int_equal(cadre_client_list_next(&l, &item), 1);
    assert_int_equal(item.len, 3);
    assert_int_equal(cadre_client_content_of(item), CADRE_CLIENT_CONTENT_JSON);
    assert_int_equal(cadre_client_list_next(&l, &item), 1);
    assert_int_equal(item.len, 10);
    assert_int_equal(cadre_client_content_of(item), CADRE_CLIENT_CONTENT_BATCH);
    assert_int_equal(cadre_client_list_next(&l, &item), 0);
    assert_int_equal(cadre_client_list_next(&l, &item), 0);
    l = (cadre_client_json){list, sizeof list - 1};
    assert_int_equal(cadre_client_list_next(&l, &item), -1);
    l = (cadre_client_json){"\xff\xff\xff\xff\0\0\0", 8};
    assert_int_equal(cadre_client_list_next(&l, &item), 0);
    l = (cadre_client_json){"\2\0\0\0\0\0\0\0{}", 10}; // one batch is not a list
    assert_int_equal(cadre_client_list_next(&l, &item), -1);
}

static void lists_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const lists[] = {"[1 2]", "[1", "{\"a\": 1}", "1", ""};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        cadre_client_json l = {lists[i], strlen(lists[i])}, item;
        if (cadre_client_list_next(&l, &item) != -1)
            fail_msg("\"%s\" passes", lists[i]);
    }
}

static void a_batch_is_written_and_read(void **state)
{
    (void)state;
    static const double x[] = {0.5, 1.5};
    static const cadre_client_tensor tensors[] = {
        {.name = "small", .dtype = "U8", .shape = {2, 3}, .n_dims = 2, .data = "abcdef", .len = 6},
        {.name = "x", .dtype = "F64", .shape = {2}, .n_dims = 1, .data = x, .len = 16}};
    cadre_client_error e;
    cadre_client_tensor t;
    void *batch;
    size_t len;
    assert_int_equal(cadre_client_batch_write(tensors, 2, "{\"p\":[1,2]}", "{\"k\":1}", &batch, &len, &e),
                     CADRE_CLIENT_OK);
    cadre_client_json doc = {batch, len};
    assert_int_equal(cadre_client_batch_tensor(doc, "small", &t, &e), CADRE_CLIENT_OK);
    assert_string_equal(t.dtype, "U8");
    assert_int_equal(t.n_dims, 2);
    assert_int_equal(t.shape[1], 3);
    assert_memory_equal(t.data, "abcdef", 6);
    assert_int_equal(cadre_client_batch_tensor(doc, "x", &t, &e), CADRE_CLIENT_OK);
    assert_memory_equal(t.data, x, 16);
    assert_int_equal(cadre_client_batch_tensor(doc, "y", &t, &e), CADRE_CLIENT_NOT_FOUND);
    assert_int_equal(cadre_client_batch_tensor(J("[]"), "y", &t, &e), CADRE_CLIENT_INVALID);
    doc.len--;
    assert_int_equal(cadre_client_batch_tensor(doc, "x", &t, NULL), CADRE_CLIENT_INVALID);
    free(batch);
}

static void what_is_no_batch_is_not_written(void **state)
{
    (void)state;
    static const struct {
        cadre_client_tensor t;
        const char *columns, *why;
    } cases[] = {
        {{.name = "x", .dtype = "F12", .shape = {1}, .n_dims = 1}, NULL, "dtype F12"},
        {{.name = "x", .dtype = "U8", .shape = {2}, .n_dims = 1, .data = "a", .len = 1}, NULL, "need 2"},
        {{.name = "x", .dtype = "U8", .shape = {1}, .n_dims = 1, .len = 1}, NULL, "has 0 bytes"},
        {{.name = "x", .dtype = "U8", .n_dims = 0}, NULL, "1 to 8 dimensions"},
        {{.name = "x", .dtype = "U8", .n_dims = 9}, NULL, "1 to 8 dimensions"},
        {{.name = "x", .dtype = "U8", .shape = {1}, .n_dims = 1, .data = "a", .len = 1},
         "{\"p\":[1,2]}",
         "'p' has 2 ro"},
        {{.name = "x", .dtype = "U8", .shape = {1}, .n_dims = 1, .data = "a", .len = 1}, "{\"p\"", "cadre.columns"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cadre_client_error e;
        void *batch;
        size_t len;
        assert_int_equal(cadre_client_batch_write(&cases[i].t, 1, cases[i].columns, NULL, &batch, &len, &e),
                         CADRE_CLIENT_INVALID);
        if (!strstr(e.message, cases[i].why))
            fail_msg("\"%s\" does not say \"%s\"", e.message, cases[i].why);
        assert_null(batch);
    }
}

// Values that the caller writes where they are sent from; the values of a tensor with data are copied there.
static void a_batch_is_made_where_it_is_sent_from(void **state)
{
    struct fixture *f = *state;
    enum { ROWS = 50000 };
    static const char given[ROWS] = {1, 2, 3};
    cadre_client_json result;
    cadre_client_tensor t[] =
        {{.name = "blank", .dtype = "U16", .shape = {ROWS}, .n_dims = 1},
         {.name = "given", .dtype = "U8", .shape = {ROWS}, .n_dims = 1, .data = given, .len = ROWS}},
                        got;
    void *batch;
    cadre_client_request r = request_of_echo();
    assert_int_equal(cadre_client_batch_new(f->client, t, 2, "{}", NULL, &batch, &r.batch_len, &f->error),
                     CADRE_CLIENT_OK);
    assert_int_equal(t[0].len, 2 * ROWS);
    assert_in_range((uintptr_t)t[0].data, (uintptr_t)batch, (uintptr_t)batch + r.batch_len - t[0].len);
    assert_memory_equal(t[1].data, given, ROWS);
    r.batch = batch;
    for (char round = 'a'; round < 'c'; round++) {
        memset((char *)batch + ((const char *)t[0].data - (char *)batch), round, t[0].len);
        assert_int_equal(cadre_client_call(f->client, &r, &result, &f->error), CADRE_CLIENT_OK);
        assert_int_equal(cadre_client_batch_tensor(result, "blank", &got, &f->error), CADRE_CLIENT_OK);
        assert_int_equal(((const char *)got.data)[2 * ROWS - 1], round);
        assert_int_equal(cadre_client_batch_tensor(result, "given", &got, &f->error), CADRE_CLIENT_OK);
        assert_memory_equal(got.data, given, ROWS);
    }
    cadre_client_batch_free(f->client, batch);
    cadre_client_batch_free(f->client, NULL);
}

// Its memory is the call's then; what nobody frees goes with the client.
static void a_batch_may_be_freed_while_it_is_on_its_way(void **state)
{
    struct fixture *f = *state;
    cadre_client_tensor t = {.name = "a", .dtype = "U8", .shape = {3000000}, .n_dims = 1}, kept = t;
    cadre_client_json result;
    void *batch, *left;
    uint64_t id;
    cadre_client_request r = request_of_echo();
    assert_int_equal(cadre_client_batch_new(f->client, &kept, 1, NULL, NULL, &left, &r.batch_len, &f->error),
                     CADRE_CLIENT_OK);
    assert_int_equal(cadre_client_batch_new(f->client, &t, 1, NULL, NULL, &batch, &r.batch_len, &f->error),
                     CADRE_CLIENT_OK);
    memset((char *)batch + (r.batch_len - t.len), 'x', t.len);
    r.batch = batch;
    r.lend = r.keep = 1;
    assert_int_equal(cadre_client_start(f->client, &r, &id, &f->error), CADRE_CLIENT_OK);
    cadre_client_batch_free(f->client, batch);
    assert_int_equal(cadre_client_get(f->client, id, &result, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(result.len, r.batch_len);
    assert_int_equal(result.text[r.batch_len - 1], 'x');
}

static void what_cannot_be_a_batch_is_not_made(void **state)
{
    struct fixture *f = *state;
    cadre_client_tensor wrong = {.name = "a", .dtype = "U7", .shape = {3}, .n_dims = 1},
                        huge = {.name = "a", .dtype = "U8", .shape = {(uint64_t)1 << 40}, .n_dims = 1};
    void *batch;
    size_t len;
    assert_int_equal(cadre_client_batch_new(f->client, &wrong, 1, NULL, NULL, &batch, &len, &f->error),
                     CADRE_CLIENT_INVALID);
    assert_null(batch);
    assert_int_equal(cadre_client_batch_new(f->client, &huge, 1, NULL, NULL, &batch, &len, &f->error),
                     CADRE_CLIENT_LIMIT);
    assert_null(batch);
    cadre_client_tensor many[9]; // together, and with their head, they are as long as a size_t can tell and go round
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    for (size_t i = 0; i < 9; i++)
        many[i] = (cadre_client_tensor){
            .name = names[i], .dtype = "U8", .shape = {1, i < 8 ? ((uint64_t)1 << 61) - 1 : 0}, .n_dims = 2};
    assert_int_equal(cadre_client_batch_new(f->client, many, 9, NULL, NULL, &batch, &len, &f->error),
                     CADRE_CLIENT_LIMIT);
    assert_null(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(batches_go_and_come_as_they_are, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_is_made_where_it_is_sent_from, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_may_be_freed_while_it_is_on_its_way, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_a_batch_is_not_made, setup, teardown),
        cmocka_unit_test(results_that_are_no_json_are_walked_over_too),
        cmocka_unit_test(lists_that_are_none_are_refused),
        cmocka_unit_test(a_batch_is_written_and_read),
        cmocka_unit_test(what_is_no_batch_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
