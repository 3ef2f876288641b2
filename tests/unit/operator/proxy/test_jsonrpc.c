// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/jsonrpc.h"

#include "common/wire/area.h"
#include "operator/proxy/group_change.h"
#include "operator/proxy/output.h"
#include "operator/proxy/tenant.h"

#include "tests/unit/operator/proxy/proxy_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world { // two ranks and a client that speaks JSON-RPC
    struct proxy_fixture f;
    struct worker workers[2];
    struct jsonrpc j;
};

static int setup(void **state)
{
    struct world *d = xcalloc(1, sizeof *d);
    fixture_init(&d->f, NULL);
    fixture_group(&d->f, 2, 1, NULL);
    for (uint32_t i = 0; i < 2; i++)
        worker_start(&d->f, &d->workers[i], i, 1);
    jsonrpc_init(&d->j, &d->f.router, "ml", NULL, 1 << 20, d);
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    struct world *d = *state;
    jsonrpc_done(&d->j);
    for (uint32_t i = 0; i < 2; i++)
        worker_hang_up(&d->f, &d->workers[i]);
    fixture_done(&d->f);
    free(d);
    return 0;
}

static void asks(struct world *d, const char *text)
{
    jsonrpc_input(&d->j, text, strlen(text));
}

static char *next_text(struct world *d, size_t *ret_len)
{
    struct parts parts;
    while (!jsonrpc_next(&d->j, &parts)) {
        if (!jsonrpc_reads(&d->j))
            return NULL;
        (void)tenants_next_turn(&d->f.router);
    }
    char *text = xmalloc(parts.len + 1);
    *ret_len = parts_read(&parts, text, parts.len);
    text[*ret_len] = '\0';
    parts_done(&parts);
    return text;
}

static void hears(struct world *d, const char *want)
{
    size_t len = 0, n = want ? strlen(want) : 0;
    _cleanup_(free_p) char *text = next_text(d, &len);
    if (!text || !want) {
        assert_ptr_equal(text, want);
        return;
    }
    assert_int_equal(strlen(text), len);
    bool same = want[n - 1] == '*' ? strncmp(text, want, n - 1) == 0 : strcmp(text, want) == 0;
    if (!same)
        fail_msg("%s\ncame, not\n%s", text, want);
}

static void both_answer(struct world *d, const char *first_args, const char *second_args)
{
    worker_says(&d->f, &d->workers[0], worker_takes(&d->workers[0], first_args), "1");
    worker_says(&d->f, &d->workers[1], worker_takes(&d->workers[1], second_args), "{\"a\":\"]\"}");
}

static void a_call_is_answered_under_its_id_as_it_was_written(void **state)
{
    static const char *const ids[] = {"1", "\"a\\u0062\"", "1.0e1", "-7", "\"\""};
    struct world *d = *state;
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"group.call\",\"params\":{\"group\":\"llama\","
                 "\"method\":\"add\",\"args\": {\"x\": 1.50}, \"timeoutMs\":100,\"rank\":null}}",
                 ids[i]);
        asks(d, text);
        assert_false(jsonrpc_idle(&d->j));
        both_answer(d, "{\"x\": 1.50}", "{\"x\": 1.50}");
        snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":[1,{\"a\":\"]\"}]}", ids[i]);
        hears(d, text);
        hears(d, NULL);
        assert_true(jsonrpc_idle(&d->j));
    }
}

#define CALL(id, more) \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"group.call\",\"params\":{\"group\":\"llama\"" more "}}"

// The client's queue has no room for it, so the client could not read it either.
static void a_result_that_is_too_long_for_the_connection_is_an_error_of_its_call(void **state)
{
    enum { LONG = 3 << 19 };
    struct world *d = *state;
    _cleanup_(free_p) char *text = xmalloc(LONG + 1);
    memset(text, ' ', LONG);
    text[0] = '1';
    text[LONG] = '\0';
    asks(d, CALL("1", ",\"method\":\"add\",\"rank\":0"));
    worker_says(&d->f, &d->workers[0], worker_takes(&d->workers[0], ""), text);
    _cleanup_(free_p) char *error = xasprintf(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32005,\"message\":\"add() of ml/llama ran, but the "
        "result of rank 0 has %d bytes, and this connection takes at most %zu: keep the result on its rank "
        "(\\\"keep\\\"), or call over cadre.v1*",
        LONG, ((size_t)1 << 20) - record_item_cost - sizeof(struct record_part));
    hears(d, error);
    assert_int_equal(d->j.session->peer.close_code, 0);
    asks(d, CALL("2", ",\"method\":\"add\",\"rank\":0"));
    worker_says(&d->f, &d->workers[0], worker_takes(&d->workers[0], ""), "2");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":2}");
}

static void params_say_who_runs_it_with_what(void **state)
{
    struct world *d = *state;
    asks(d, CALL("1", ",\"method\":\"add\",\"perRank\":[1,[2]]"));
    both_answer(d, "[1]", "[2]");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[1,*");
    asks(d, CALL("1", ",\"method\":\"add\",\"perRank\":{\"x\":[1,2]}"));
    both_answer(d, "{\"x\":1}", "{\"x\":2}");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[1,*");
    asks(d, CALL("1", ",\"method\":\"each\",\"dispatch\":\"ONE_TO_ALL\",\"args\":[3]"));
    both_answer(d, "[3]", "[3]");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[1,*");
    asks(d, CALL("1", ",\"method\":\"add\",\"execute\":\"RANK_ZERO\""));
    worker_says(&d->f, &d->workers[0], worker_takes(&d->workers[0], ""), "5");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}");
    asks(d, CALL("1", ",\"method\":\"add\",\"rank\":1"));
    worker_says(&d->f, &d->workers[1], worker_takes(&d->workers[1], ""), "6");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":6}");
}

static void batches_of_lists_are_split_and_joined(void **state)
{
    struct world *d = *state;
    static const char first[] = "{\"x\":[1, 2]}", second[] = "{\"x\":[3,3]}";
    asks(d, CALL("1", ",\"method\":\"add\",\"dispatch\":\"SPLIT\",\"pad\":true,\"split\":{\"index\":[1,0]},"
                      "\"collect\":{\"ranks\":[1,0]},\"args\":{\"x\":[1, 2,3]}"));
    worker_says(&d->f, &d->workers[0], worker_takes(&d->workers[0], second), "{\"y\":[5,6]}");
    worker_says(&d->f, &d->workers[1], worker_takes(&d->workers[1], first), "{\"y\":[\"a\",null]}");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"y\":[\"a\",null,5]}}");
    asks(d, CALL("1", ",\"method\":\"add\",\"dispatch\":\"SPLIT\",\"split\":7,\"args\":[1]"));
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602,\"message\":\"add() of ml/llama: split must*");
}

static void a_batch_of_tensors_is_not_for_text(void **state)
{
    struct world *d = *state;
    struct err err = ERR_INIT;
    asks(d, CALL("1", ",\"method\":\"add\",\"rank\":1"));
    assert_int_equal(worker_answer_bytes(&d->f, &d->workers[1], worker_takes(&d->workers[1], ""), RECORD_RESULT,
                                         "\2\0\0\0\0\0\0\0{}", 10, &err),
                     0);
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"the method ran, but the result "
             "that a worker sent is a batch of tensors, which only clients of cadre.v1 can read (10 bytes)\"}}");
}

static void what_is_wrong_gets_the_code_of_the_standard(void **state)
{
    static const struct {
        const char *text, *id, *error;
    } cases[] = {
        {"", "null", "-32700,\"message\":\"not valid JSON at byte 0*"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1", "null", "-32700,*"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "null", "-32700,*"},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.info\"}]", "null",
         "-32600,\"message\":\"batches are not supported*"},
        {"7", "null", "-32600,\"message\":\"a request is an object, not a number\"}}"},
        {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"group.info\"}", "null", "-32600,\"message\":\"\\\"id\\\" must*"},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"group.info\"}", "null", "-32600,*"},
        {"{\"id\":1,\"method\":\"group.info\"}", "1", "-32600,\"message\":\"a request needs*"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", "1", "-32600,*"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"object.eat\"}", "1",
         "-32601,\"message\":\"there is no method obj*"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.call\",\"params\":[]}", "1", "-32602,*"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.cancel\",\"params\":{}}", "1", "-32602,*"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.info\"}", "1",
         "-32602,\"message\":\"the call names no \\\"group\\\"*"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.kill\",\"params\":{\"group\":\"llama\"}}", "1",
         "-32602,\"message\":\"group.kill: which rank? It ends one process\"*"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.kill\",\"params\":{\"rank\":1,\"args\":[]}}", "1",
         "-32602,\"message\":\"group.kill has no parameter \\\"args\\\"\"}}"},
        {CALL("1", ""), "1", "-32602,\"message\":\"group.call needs \\\"method\\\"*"},
        {CALL("1", ",\"method\":1"), "1", "-32602,*"},
        {CALL("1", ",\"method\":\"add\",\"arg\":1"), "1",
         "-32602,\"message\":\"group.call has no parameter \\\"arg\\\"\"}}"},
        {CALL("1", ",\"method\":\"add\",\"args\":1"), "1",
         "-32602,\"message\":\"\\\"args\\\" must be a list or an object\"}}"},
        {CALL("1", ",\"method\":\"add\",\"perRank\":[1,2],\"args\":[]"), "1",
         "-32602,\"message\":\"\\\"perRank\\\" cannot be used*"},
        {CALL("1", ",\"method\":\"add\",\"perRank\":[1]"), "1",
         "-32602,\"message\":\"add(): the list of arguments has 1 elements, ml/llama has 2 ranks*"},
        {CALL("1", ",\"method\":\"add\",\"rank\":-1"), "1", "-32602,\"message\":\"\\\"rank\\\" must*"},
        {CALL("1", ",\"method\":\"add\",\"rank\":2"), "1", "-32602,\"message\":\"ml/llama has no rank 2*"},
        {CALL("1", ",\"method\":\"add\",\"dispatch\":\"SOME\""), "1",
         "-32602,\"message\":\"\\\"dispatch\\\": there is no mode \\\"SOME\\\"; there are ONE_TO_ALL, ALL_TO_ALL, *"},
        {CALL("1", ",\"method\":\"add\",\"execute\":7"), "1",
         "-32602,\"message\":\"\\\"execute\\\": there is no mode 7; there are ALL, RANK_ZERO, ANY\"}}"},
        {CALL("1", ",\"method\":\"add\",\"timeoutMs\":0"), "1", "-32602,*"},
        {CALL("1", ",\"method\":\"sub\""), "1", "-32007,\"message\":\"ml/llama has no method 'sub'*"},
    };
    struct world *d = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char want[300];
        snprintf(want, sizeof want, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%s", cases[i].id,
                 cases[i].error);
        asks(d, cases[i].text);
        hears(d, want);
        hears(d, NULL);
        assert_true(jsonrpc_idle(&d->j));
    }
}

static void the_error_of_a_rank_comes_with_its_place(void **state)
{
    struct world *d = *state;
    struct err err = ERR_INIT;
    asks(d, CALL("1", ",\"method\":\"add\",\"rank\":1"));
    worker_answer(&d->f, &d->workers[1], worker_takes(&d->workers[1], ""), RECORD_ERROR,
                  "{\"code\":\"FAILED\",\"message\":\"no\"}", &err);
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"rank 1: no\",\"data\":{\"code\":"
             "\"FAILED\",\"message\":\"rank 1: no\",\"rank\":1,\"pod\":\"llama-1-0\",\"node\":\"n1\"}}}");
}

static void a_result_cannot_break_its_envelope(void **state)
{
    static const char *const bad[] = {"1,\"id\":2", "1}",    "[1",  "\"a",      "[1}",
                                      "\"\xff\"",   " ",     "NaN", "01",       "{'a':1}",
                                      "[1,,2]",     "[1 2]", "tru", "\"\x01\"", "[-Infinity]"};
    struct world *d = *state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        asks(d, CALL("1", ",\"method\":\"add\",\"rank\":1"));
        worker_says(&d->f, &d->workers[1], worker_takes(&d->workers[1], ""), bad[i]);
        hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"the method ran, but*");
    }
}

// A list of this many bytes, with this end.
static char *long_result(size_t len, const char *end)
{
    char *text = xmalloc(len + 1);
    memset(text, ' ', len);
    text[0] = '[';
    memcpy(text + len - strlen(end), end, strlen(end) + 1);
    return text;
}

static void a_long_result_is_looked_at_in_turns_of_its_namespace(void **state)
{
    enum { LEN = 700000, SLICE = TENANT_TURN * TENANT_UNIT_BYTES };
    static const char *const ends[] = {"1]", "1}"};
    struct world *d = *state;
    for (int i = 0; i < 2; i++) {
        _cleanup_(free_p) char *result = long_result(LEN, ends[i]);
        struct parts text;
        asks(d, CALL("1", ",\"method\":\"add\",\"rank\":1"));
        worker_says(&d->f, &d->workers[1], worker_takes(&d->workers[1], ""), result);
        int turns = 1;
        for (; !jsonrpc_next(&d->j, &text); turns++) {
            assert_true(jsonrpc_busy(&d->j));
            assert_false(jsonrpc_idle(&d->j));
            assert_false(tenant_has_turn(d->j.session->tenant)); // it has used up its part
            (void)tenants_next_turn(&d->f.router);
        }
        assert_in_range(turns, LEN / SLICE, LEN / SLICE + 2);
        assert_false(jsonrpc_busy(&d->j));
        _cleanup_(free_p) char *got = xmalloc(text.len + 1);
        got[parts_read(&text, got, text.len)] = '\0';
        assert_true(i == 0 ? text.len > LEN : text.len < 200);
        assert_non_null(strstr(got, i == 0 ? "\"result\":[ " : "\"code\":-32603,\"message\":\"the method ran, but"));
        parts_done(&text);
        (void)tenants_next_turn(&d->f.router);
    }
    assert_int_equal(quota_used(d->j.session->quota), 0);
}

static void area_ends(struct area *a)
{
    (void)a;
}

static void a_result_in_shared_memory_is_copied_in_turns_of_its_namespace(void **state)
{
    enum { LEN = 700000, SLICE = TENANT_TURN * TENANT_UNIT_BYTES };
    struct world *d = *state;
    _cleanup_(free_p) char *result = long_result(LEN, "1]");
    struct area area = {.fd = -1, .base = result, .size = LEN, .end = area_ends};
    struct parts text;
    struct err err = ERR_INIT;
    int turns = 1;
    area_init(&area);
    asks(d, CALL("1", ",\"method\":\"add\",\"rank\":1"));
    struct record rec = {.h = {.type = RECORD_RESULT, .call = worker_takes(&d->workers[1], ""), .rank = 1},
                         .body = result,
                         .len = LEN,
                         .blob = blob_in_area(&area, result, LEN, 0)};
    assert_int_equal(router_member_record(&d->f.router, d->workers[1].member, &rec, &err), 0);
    blob_unref(rec.blob);
    for (; !jsonrpc_next(&d->j, &text); turns++) {
        // The namespace pays for no more than that.
        assert_in_range(quota_used(d->j.session->quota), turns * SLICE, (turns + 1) * SLICE);
        (void)tenants_next_turn(&d->f.router);
    }
    assert_in_range(turns, LEN / SLICE, LEN / SLICE + 2);
    memset(result, 'x', LEN); // the worker changes it, too late
    _cleanup_(free_p) char *got = xmalloc(text.len + 1);
    got[parts_read(&text, got, text.len)] = '\0';
    assert_null(strchr(strstr(got, "\"result\":[") + 1, 'x'));
    parts_done(&text);
    (void)tenants_next_turn(&d->f.router);
    area_unref(&area);
}

// Passes the message on as the server does: behind bytes that are free.
static struct blob *long_message(const char *before, size_t spaces, const char *behind)
{
    size_t room = JSONRPC_HEAD_MAX, n = strlen(before), m = strlen(behind);
    struct blob *b = blob_new(room + n + spaces + m, NULL);
    memcpy(b->data + room, before, n);
    memset(b->data + room + n, ' ', spaces);
    memcpy(b->data + room + n + spaces, behind, m);
    return b;
}

static int reads_in_turns(struct world *d, struct blob *b)
{
    struct parts text;
    int turns = 1;
    jsonrpc_input_long(&d->j, b, b->data + JSONRPC_HEAD_MAX, b->len - JSONRPC_HEAD_MAX);
    blob_unref(b);
    for (; !jsonrpc_next(&d->j, &text) && jsonrpc_reads(&d->j); turns++) {
        assert_true(jsonrpc_busy(&d->j));
        assert_false(jsonrpc_idle(&d->j));
        assert_false(tenant_has_turn(d->j.session->tenant));
        (void)tenants_next_turn(&d->f.router);
    }
    (void)tenants_next_turn(&d->f.router);
    return turns;
}

static void a_long_request_is_read_in_turns_of_its_namespace_and_not_copied(void **state)
{
    enum { LEN = 700000, SLICE = TENANT_TURN * TENANT_UNIT_BYTES };
    static const char *const before[] = {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.call\",\"params\":{"
                                         "\"group\":\"llama\",\"method\":\"add\",\"rank\":1,\"args\":[7",
                                         "{\"params\":{\"group\":\"llama\",\"args\":[7"},
                             *const behind[] = {"]}}", "],\"method\":\"add\",\"rank\":1,\"traceparent\":null},"
                                                       "\"method\":\"group.call\",\"jsonrpc\":\"2.0\",\"id\":1}"};
    struct world *d = *state;
    for (int i = 0; i < 2; i++) {
        struct blob *b = blob_ref(long_message(before[i], LEN, behind[i]));
        assert_in_range(reads_in_turns(d, b), LEN / SLICE, LEN / SLICE + 2);
        struct wire_record *r = wire_next(&d->workers[1].wire);
        assert_int_equal(r->h.type, RECORD_CALL);
        assert_in_range(r->len, LEN, LEN + 200);
        assert_non_null(strstr(r->body + 4, "\"method\":\"add\""));
        assert_memory_equal(r->body + r->len - LEN - 3, "[7  ", 4);
        worker_says(&d->f, &d->workers[1], r->h.call, "1");
        free(r);
        hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}");
        blob_unref(b);
    }
    assert_int_equal(quota_used(d->j.session->quota), 0);
}

static void what_is_beside_the_arguments_is_short(void **state)
{
    static const struct {
        const char *before, *behind, *want;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"method\":\"group.call\",\"id\":\"", "\"}",
         "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"\\\"id\\\" of a request has 300002 "
         "bytes; "
         "at most 16384\"}}"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.call\",\"params\":{\"method\":\"", "\"}}",
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602,\"message\":\"group.call: \\\"method\\\" has 300002 "
         "bytes; "
         "at most 16384\"}}"},
        {"[", "]",
         "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"batches are not supported*"},
        {"{\"id\":1,", ",}",
         "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"not valid JSON at byte 300008, or "
         "nested "
         "deeper than 128 levels\"}}"},
    };
    struct world *d = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct blob *b = long_message(cases[i].before, 300000, cases[i].behind);
        jsonrpc_input_long(&d->j, b, b->data + JSONRPC_HEAD_MAX, b->len - JSONRPC_HEAD_MAX);
        blob_unref(b);
        hears(d, cases[i].want);
    }
}

static void an_id_in_use_is_refused_and_the_first_goes_on(void **state)
{
    struct world *d = *state;
    asks(d, CALL("1", ",\"method\":\"add\""));
    asks(d, CALL("1", ",\"method\":\"add\""));
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32600,\"message\":\"id 1 is in use*");
    both_answer(d, "", "");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[1,*");
}

static void a_request_is_canceled_by_its_id(void **state)
{
    struct world *d = *state;
    asks(d, CALL("\"x\"", ",\"method\":\"add\""));
    for (uint32_t i = 0; i < 2; i++)
        wire_pass(&d->workers[i].wire);
    asks(d, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"group.cancel\",\"params\":{\"id\":\"x\"}}");
    asks(d, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"group.cancel\",\"params\":{\"id\":\"y\"}}");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":true}");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":false}");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":-32006,*");
    both_answer(d, "", "");
    hears(d, NULL);
}

static void a_notification_runs_and_gets_no_answer(void **state)
{
    struct world *d = *state;
    asks(d, "{\"jsonrpc\":\"2.0\",\"method\":\"group.call\",\"params\":{\"group\":\"llama\",\"method\":\"add\"}}");
    for (uint32_t i = 0; i < 2; i++) {
        struct wire_record *r = wire_next(&d->workers[i].wire);
        assert_int_equal(r->h.flags, RECORD_QUIET); // the ranks do not send results either
        worker_says(&d->f, &d->workers[i], r->h.call, "");
        free(r);
    }
    asks(d, "{\"jsonrpc\":\"2.0\",\"method\":\"nonsense\"}");
    hears(d, NULL);
    assert_true(jsonrpc_idle(&d->j));
}

static void info_is_the_groups(void **state)
{
    struct world *d = *state;
    asks(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.info\",\"params\":{\"group\":\"ml/llama\"}}");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"namespace\":\"ml\",\"name\":\"llama\",*");
    asks(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.info\",\"params\":{\"group\":\"llama\",\"from\":9}}");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602,\"message\":\"the argument of group.info is the "
             "rank*");
    asks(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.info\",\"params\":{\"args\":[]}}");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602,\"message\":\"group.info has no parameter*");
}

static void what_is_in_flight_ends_with_the_client(void **state)
{
    struct world *d = *state;
    asks(d, CALL("1", ",\"method\":\"add\""));
    asks(d, CALL("2", ",\"method\":\"add\""));
    asks(d, "{}"); // nobody takes the answer
    assert_int_equal(d->f.router.n_calls, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void what_ranks_print_comes_as_notifications(void **state)
{
    struct world *d = *state;
    asks(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.output\",\"params\":{\"group\":\"llama\"}}");
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}");
    output_line(&d->f.router, FIXTURE_UID, 0, "hello", 5);
    output_line(&d->f.router, FIXTURE_UID, 1, "hello", 5);
    hears(d, "{\"jsonrpc\":\"2.0\",\"method\":\"group.output\",\"params\":{\"group\":\"ml/llama\",\"lines\":["
             "{\"ranks\":\"0-1\",\"text\":\"hello\"}]}}");
    hears(d, NULL);
}

static void a_namespace_without_room_still_renews(void **state)
{
    struct world *d = *state;
    struct quota *share = d->j.session->tenant->quota;
    size_t taken = quota_left(share);
    assert_true(quota_charge(share, taken));
    asks(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.renew\",\"params\":{\"group\":\"g\",\"uid\":\"u\"}}");
    struct group_change *e = router_group_change(&d->f.router);
    assert_non_null(e);
    assert_string_equal(e->args, "{\"group\":\"g\",\"uid\":\"u\"}");
    quota_refund(share, taken);
    group_change_answer(e, "null", 4);
    hears(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_call_is_answered_under_its_id_as_it_was_written),
        TEST(a_result_that_is_too_long_for_the_connection_is_an_error_of_its_call),
        TEST(params_say_who_runs_it_with_what),
        TEST(batches_of_lists_are_split_and_joined),
        TEST(a_batch_of_tensors_is_not_for_text),
        TEST(what_is_wrong_gets_the_code_of_the_standard),
        TEST(the_error_of_a_rank_comes_with_its_place),
        TEST(a_result_cannot_break_its_envelope),
        TEST(what_is_beside_the_arguments_is_short),
        TEST(a_long_request_is_read_in_turns_of_its_namespace_and_not_copied),
        TEST(a_long_result_is_looked_at_in_turns_of_its_namespace),
        TEST(a_result_in_shared_memory_is_copied_in_turns_of_its_namespace),
        TEST(an_id_in_use_is_refused_and_the_first_goes_on),
        TEST(a_request_is_canceled_by_its_id),
        TEST(a_notification_runs_and_gets_no_answer),
        TEST(info_is_the_groups),
        TEST(a_namespace_without_room_still_renews),
        TEST(what_is_in_flight_ends_with_the_client),
        TEST(what_ranks_print_comes_as_notifications),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
