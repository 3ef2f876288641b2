// SPDX-License-Identifier: Apache-2.0
// The rules of calls, one by one (docs/calls.md): modes, ids, answers, deadlines, order.
#include "tests/unit/operator/proxy/proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void one_to_all_gives_all_the_same_and_collects_in_rank_order(void **state)
{
    struct world *w = *state;
    sends_group(w, 7, ADD, "{\"x\":10}");
    for (uint32_t i = WORLD; i-- > 0;) {
        char json[8];
        hears_nothing(w);
        snprintf(json, sizeof json, "%u", 10 + i);
        worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], "{\"x\":10}"), json);
    }
    hears(w, "7 RESULT [10,11,12,13]");
    hears_nothing(w);
}

static void an_empty_result_is_null(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, ADD, NULL);
    for (uint32_t i = 0; i < WORLD; i++)
        worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], ""), i == 2 ? "" : "0");
    hears(w, "1 RESULT [0,0,null,0]");
    sends(w, (struct call_text){.id = 1, .rank = 1, .head = ADD});
    worker_says(&w->f, &w->workers[1], worker_takes(&w->workers[1], ""), "");
    hears(w, "1 RESULT null");
}

static void a_call_whose_result_nobody_wants_tells_all_ranks_and_ends_when_all_have_answered(void **state)
{
    struct world *w = *state;
    uint32_t ids[WORLD];
    sends(w, (struct call_text){.id = 1, .rank = RECORD_GROUP, .head = ADD, .args = "[1]", .flags = RECORD_QUIET});
    for (uint32_t i = 0; i < WORLD; i++) {
        struct wire_record *r = wire_next(&w->workers[i].wire);
        assert_int_equal(r->h.type, RECORD_CALL);
        assert_int_equal(r->h.flags, RECORD_QUIET);
        ids[i] = r->h.call;
        free(r);
    }
    for (uint32_t i = 0; i < WORLD; i++) {
        hears_nothing(w);
        worker_says(&w->f, &w->workers[i], ids[i], i ? "" : "[2]"); // rank 0 sends a result all the same
    }
    hears(w, "1 RESULT null");
    sends(w, (struct call_text){.id = 1, .rank = 2, .head = ADD, .flags = RECORD_QUIET});
    worker_says(&w->f, &w->workers[2], worker_takes(&w->workers[2], ""), "7");
    hears(w, "1 RESULT null");
}

// The session has the right, whatever the client says. Older workers do not know the right.
static void only_a_worker_that_asks_hears_who_may_send_code(void **state)
{
    static const char *const asks[] = {"\"code\":true", "\"code\":1", "\"code\":false", "\"pid\":1"};
    struct world *w = *state;
    for (uint32_t i = 0; i < 2 * ARRAY_LEN(asks); i++) {
        char hello[160];
        struct err err = ERR_INIT;
        bool right = i % 2, told = right && i / 2 == 0;
        snprintf(hello, sizeof hello,
                 "{%s,\"methods\":[{\"name\":\"add\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"}]}", asks[i / 2]);
        worker_hang_up(&w->f, &w->workers[1]);
        fixture_pass(&w->f, 60000);
        assert_int_equal(worker_dial_as(&w->f, &w->workers[1], 1, 1, hello, &err), 0);
        w->c.session->code = right;
        sends(w, (struct call_text){.id = 1, .rank = 1, .head = ADD, .flags = RECORD_CODE});
        struct wire_record *r = wire_next(&w->workers[1].wire);
        assert_int_equal(r->h.flags, told ? RECORD_CODE : 0);
        worker_says(&w->f, &w->workers[1], r->h.call, "7");
        hears(w, "1 RESULT 7");
        free(r);
    }
}

static void the_list_of_an_only_rank_has_one_result(void **state)
{
    struct world *w = *state;
    static char digits[2001], list[sizeof digits + sizeof "1 RESULT []"];
    const char *const cases[][2] = {{"7", "1 RESULT [7]"}, {"", "1 RESULT [null]"}, {digits, list}};
    memset(digits, '7', sizeof digits - 1);
    snprintf(list, sizeof list, "1 RESULT [%s]", digits);
    fixture_group(&w->f, 1, 2, NULL);
    worker_start(&w->f, &w->workers[0], 0, 2);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        sends_group(w, 1, ADD, "[1]");
        worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], "[1]"), cases[i][0]);
        hears(w, cases[i][1]);
    }
}

static void an_error_of_such_a_call_is_told(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    sends(w, (struct call_text){.id = 1, .rank = 2, .head = ADD, .flags = RECORD_QUIET});
    uint32_t id = worker_takes(&w->workers[2], "");
    assert_int_equal(
        worker_answer(&w->f, &w->workers[2], id, RECORD_ERROR, "{\"code\":\"FAILED\",\"message\":\"no\"}", &err), 0);
    hears(w, "1 ERROR rank=2 FAILED*");
}

static void a_list_of_one_a_rank_is_split(void **state)
{
    static const struct {
        const char *args, *want[WORLD];
    } cases[] = {
        {"[1,1,2,\"x,]\"]", {"[1]", "[1]", "[2]", "[\"x,]\"]"}}, // each element is a single argument by position
        {"[{\"x\":1},[2,3], {} ,[[4]]]", {"{\"x\":1}", "[2,3]", "{}", "[[4]]"}},
        {"{\"x\":[1,2,3,4],\"y\":[5,6,[7],8]}",
         {"{\"x\":1,\"y\":5}", "{\"x\":2,\"y\":6}", "{\"x\":3,\"y\":[7]}", "{\"x\":4,\"y\":8}"}},
        {"{}", {"{}", "{}", "{}", "{}"}},
    };
    struct world *w = *state;
    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        sends_group(w, 1, "{\"method\":\"each\"}", cases[k].args);
        for (uint32_t i = 0; i < WORLD; i++)
            worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], cases[k].want[i]), "0");
        hears(w, "1 RESULT [0,0,0,0]");
    }
}

static void a_list_of_another_length_is_refused_and_reaches_no_rank(void **state)
{
    static const struct {
        const char *args, *says;
    } cases[] = {
        {"[1,2,3]", "each(): the list of arguments has 3 elements, ml/llama has 4 ranks"},
        {"[1,2,3,4,5]", "has more than 4 elements"},
        {"[]", "has 0 elements"},
        {"{\"x\":[1,2,3]}", "argument 'x' has 3 elements"},
        {"{\"x\":[1,2,3,4,5]}", "argument 'x' has more than 4 elements"},
        {"{\"x\":1}", "argument 'x' must be a list"},
        {"{\"x\":[1,2,3,4}", "not valid JSON at byte"},
        {"[1,2,3,4", "not valid JSON at byte"},
        {"{\"x\":[1,2,,4]}", "not valid JSON at byte"},
        {"7", "needs a list of arguments"},
        {NULL, "needs a list of arguments"},
    };
    struct world *w = *state;
    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        sends_group(w, 1, "{\"method\":\"each\"}", cases[k].args);
        hears_about(w, "1 ERROR INVALID", cases[k].says);
        for (uint32_t i = 0; i < WORLD; i++)
            assert_int_equal(worker_takes(&w->workers[i], ""), 0);
    }
}

// The mode with verl's name: one argument for each rank, and a list of results. No other form is taken.
static void dp_compute_is_strictly_one_element_a_rank(void **state)
{
    struct world *w = *state;
    static const char *const good[] = {"[1,2,3,4]", "{\"x\":[1,2,3,4]}"};
    for (size_t k = 0; k < ARRAY_LEN(good); k++) {
        sends(w, (struct call_text){
                     .id = 1, .rank = RECORD_GROUP, .dispatch = RECORD_DP_COMPUTE, .head = ADD, .args = good[k]});
        for (uint32_t i = 0; i < WORLD; i++) {
            char args[16];
            snprintf(args, sizeof args, k ? "{\"x\":%u}" : "[%u]", i + 1);
            worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], args), "7");
        }
        hears(w, "1 RESULT [7,7,7,7]");
    }
    static const struct {
        const char *args, *says;
    } wrong[] = {
        {"[1,2]", "has 2 elements, ml/llama has 4 ranks"},
        {"{\"x\":[1,2,3,4],\"y\":2}", "argument 'y' must be a list with one element per rank, because the call is DP_"},
        {"7", "a call that is DP_COMPUTE needs a list of arguments"}};
    for (size_t k = 0; k < ARRAY_LEN(wrong); k++) {
        sends(w, (struct call_text){
                     .id = 2, .rank = RECORD_GROUP, .dispatch = RECORD_DP_COMPUTE, .head = ADD, .args = wrong[k].args});
        hears_about(w, "2 ERROR INVALID", wrong[k].says);
    }
}

static void rank_zero_gives_one_result_and_takes_the_arguments_whole(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, "{\"method\":\"first\"}", "{\"x\":1,\"y\":2}"); // as the method was registered
    worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], "{\"x\":1,\"y\":2}"), "5");
    hears(w, "1 RESULT 5");
    sends(w,
          (struct call_text){.id = 2, .rank = RECORD_GROUP, .execute = RECORD_RANK_ZERO, .head = ADD, .args = "[1]"});
    worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], "[1]"), "6");
    hears(w, "2 RESULT 6");
    for (uint32_t i = 1; i < WORLD; i++)
        assert_int_equal(worker_takes(&w->workers[i], ""), 0);
}

static void a_call_to_one_rank_gives_one_result(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){.id = 1, .rank = 2, .head = "{\"method\":\"each\"}", .args = "[9]"});
    worker_says(&w->f, &w->workers[2], worker_takes(&w->workers[2], "[9]"), "\"nine\"");
    hears(w, "1 RESULT \"nine\"");
    sends(w, (struct call_text){.id = 1, .rank = WORLD, .head = ADD});
    hears(w, "1 ERROR INVALID ml/llama has no rank 4; its ranks are 0 to 3");
}

static void the_caller_may_override_the_declared_modes(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){
                 .id = 1, .rank = RECORD_GROUP, .dispatch = RECORD_ALL_TO_ALL, .head = ADD, .args = "[1,2,3,4]"});
    static const char *const want[] = {"[1]", "[2]", "[3]", "[4]"};
    for (uint32_t i = 0; i < WORLD; i++)
        worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], want[i]), "0");
    hears(w, "1 RESULT [0,0,0,0]");
    // If the client gives both modes, the declaration is not needed: the worker knows its methods.
    sends(w, (struct call_text){.id = 2,
                                .rank = RECORD_GROUP,
                                .dispatch = RECORD_ONE_TO_ALL,
                                .execute = RECORD_ALL,
                                .head = "{\"method\":\"nobody_knows\"}"});
    for (uint32_t i = 0; i < WORLD; i++)
        worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], ""), "1");
    hears(w, "2 RESULT [1,1,1,1]");
}

// Each call goes to the rank with the fewest calls. Equally busy ranks take turns.
static void any_rank_is_the_least_busy_one(void **state)
{
    struct world *w = *state;
    uint32_t ids[WORLD], seen = 0;
    sends(w, (struct call_text){.id = 50, .rank = 2, .head = ADD, .args = "[0]"});
    for (uint32_t i = 1; i < WORLD; i++)
        sends(w, (struct call_text){.id = i, .rank = RECORD_GROUP, .execute = RECORD_ANY, .head = ADD, .args = "[1]"});
    ids[2] = worker_takes(&w->workers[2], "[0]");
    for (uint32_t i = 0; i < WORLD; i++)
        if (i != 2)
            seen += (ids[i] = worker_takes(&w->workers[i], "[1]")) != 0;
    assert_int_equal(seen, 3);
    worker_says(&w->f, &w->workers[1], ids[1], "7");
    sends(w, (struct call_text){.id = 60, .rank = RECORD_GROUP, .execute = RECORD_ANY, .head = ADD, .args = "[2]"});
    uint32_t again = worker_takes(&w->workers[1], "[2]");
    assert_int_not_equal(again, 0);
    worker_says(&w->f, &w->workers[1], again, "8");
    assert_non_null(strstr(client_hears(&w->c), " RESULT 7"));
    hears(w, "60 RESULT 8");
}

// A call of any rank needs one that is connected, not all of them.
static void any_rank_needs_no_other(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){.id = 1, .rank = RECORD_GROUP, .execute = RECORD_ANY, .head = ADD, .args = "[1]"});
    hears_nothing(w);
    worker_start(&w->f, &w->workers[3], 3, 1);
    worker_says(&w->f, &w->workers[3], worker_takes(&w->workers[3], "[1]"), "4");
    hears(w, "1 RESULT 4");
}

static void what_cannot_be_called_is_refused_by_name(void **state)
{
    static const struct {
        const char *head, *want;
    } cases[] = {
        {"{\"method\":\"sub\"}", "1 ERROR NOT_FOUND ml/llama has no method 'sub'; it has: add, each, first"},
        {"{\"method\":\"add\",\"group\":\"other\"}", "1 ERROR NOT_FOUND there is no WorkerGroup ml/other"},
        {"{\"method\":\"add\",\"group\":\"prod/llama\"}",
         "1 ERROR FORBIDDEN this connection is for the groups of namespace ml; open another one for prod/llama"},
        {"{\"method\":\"add\",\"attempt\":9,\"whenNotReady\":\"Refuse\"}", "1 ERROR UNAVAILABLE add() was not sent: *"},
        {"[]", "1 ERROR INVALID the head of the call is not a JSON object"},
    };
    struct world *w = *state;
    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        sends_group(w, 1, cases[k].head, "{}");
        hears(w, cases[k].want);
    }
    struct record r = {.h = {.type = RECORD_CALL, .call = 1, .rank = RECORD_GROUP}, .body = "\x09", .len = 1, .seq = 1};
    struct err err = ERR_INIT;
    assert_int_equal(session_record(w->c.session, &r, UINT64_MAX, &err), 0);
    hears(w, "1 ERROR PROTO a CALL of 1 bytes is shorter than its head");
    client_close(&w->c);
    client_open(&w->f, &w->c, NULL);
    sends_group(w, 1, ADD, "{}");
    hears(w, "1 ERROR INVALID the call names no \"group\"*");
    sends_group(w, 1, "{\"method\":\"group.info\",\"group\":\"ml/llama\"}", NULL);
    hears(w, "1 RESULT {*");
}

static void an_id_in_use_ends_the_session_and_one_answered_is_free(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct call_text call = {.id = 5, .rank = 0, .head = ADD};
    sends(w, call);
    assert_int_equal(client_send(&w->c, &call, &err), ERR_PROTO);
    assert_string_equal(err.msg, "call id 5 is in use by a call that is not answered");
    worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], ""), "1");
    hears(w, "5 RESULT 1");
    sends(w, call);
    worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], ""), "2");
    hears(w, "5 RESULT 2");
}

static void the_same_id_of_two_clients_is_two_calls(void **state)
{
    struct world *w = *state;
    struct client other;
    struct err err = ERR_INIT;
    struct call_text call = {.id = 5, .rank = 0, .head = ADD, .args = "[1]"};
    client_open(&w->f, &other, "llama");
    sends(w, call);
    call.args = "[2]";
    assert_int_equal(client_send(&other, &call, &err), 0);
    uint32_t first = worker_takes(&w->workers[0], "[1]"), second = worker_takes(&w->workers[0], "[2]");
    worker_says(&w->f, &w->workers[0], second, "22");
    worker_says(&w->f, &w->workers[0], first, "11");
    hears(w, "5 RESULT 11");
    assert_string_equal(client_hears(&other), "5 RESULT 22");
    client_close(&other);
}

static void the_first_error_answers_and_the_rest_is_dropped(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    uint32_t ids[WORLD];
    sends_group(w, 1, ADD, "{}");
    for (uint32_t i = 0; i < WORLD; i++)
        ids[i] = worker_takes(&w->workers[i], "{}");
    worker_says(&w->f, &w->workers[0], ids[0], "1");
    assert_int_equal(worker_answer(&w->f, &w->workers[2], ids[2], RECORD_ERROR,
                                   "{\"code\":\"FAILED\",\"message\":\"out of \\\"memory\\\"\"}", &err),
                     0);
    hears(w, "1 ERROR rank=2 FAILED rank 2: out of \"memory\"");
    assert_int_equal(worker_answer(&w->f, &w->workers[1], ids[1], RECORD_ERROR, "nonsense", &err), 0);
    assert_int_equal(w->f.router.n_calls, 1); // the call stays until every rank has answered
    worker_says(&w->f, &w->workers[3], ids[3], "1");
    hears_nothing(w);
    assert_int_equal(w->f.router.n_calls, 0);
    assert_int_equal(worker_answer(&w->f, &w->workers[3], ids[3], RECORD_RESULT, "1", &err), ERR_PROTO);
    sends(w, (struct call_text){.id = 1, .rank = 1, .head = ADD});
    ids[1] = worker_takes(&w->workers[1], "");
    assert_int_equal(worker_answer(&w->f, &w->workers[1], ids[1], RECORD_ERROR, "nonsense", &err), 0);
    hears(w, "1 ERROR rank=1 INTERNAL rank 1: the worker sent an error that the proxy cannot read (8 bytes)");
}

static void a_worker_answers_only_what_it_was_asked(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    sends(w, (struct call_text){.id = 1, .rank = 1, .head = ADD});
    uint32_t id = worker_takes(&w->workers[1], "");
    assert_int_equal(worker_answer(&w->f, &w->workers[0], id, RECORD_RESULT, "0", &err), ERR_PROTO);
    assert_int_equal(worker_answer(&w->f, &w->workers[2], id, RECORD_RESULT, "0", &err), ERR_PROTO);
    assert_int_equal(worker_answer(&w->f, &w->workers[1], id + 1, RECORD_RESULT, "0", &err), ERR_PROTO);
    assert_int_equal(worker_answer(&w->f, &w->workers[1], id, RECORD_CANCEL, "", &err), ERR_PROTO);
    worker_says(&w->f, &w->workers[1], id, "0");
    hears(w, "1 RESULT 0");
    hears_nothing(w);
}

static void a_deadline_answers_and_tells_the_ranks_that_are_late(void **state)
{
    struct world *w = *state;
    uint32_t ids[WORLD];
    sends_group(w, 1, "{\"method\":\"add\",\"timeoutMs\":50}", "{}");
    assert_int_equal(router_wait_ms(&w->f.router), 50);
    for (uint32_t i = 0; i < WORLD; i++)
        ids[i] = worker_takes(&w->workers[i], "{}");
    worker_says(&w->f, &w->workers[0], ids[0], "1");
    fixture_pass(&w->f, 49);
    hears_nothing(w);
    fixture_pass(&w->f, 1);
    hears(w, "1 ERROR TIMEOUT add() of ml/llama: not done within 50 ms: no answer from ranks 1, 2, 3; it may have run");
    assert_null(wire_next(&w->workers[0].wire));
    for (uint32_t i = 1; i < WORLD; i++) {
        cancels_at(w, i, ids[i]);
        worker_says(&w->f, &w->workers[i], ids[i], "1"); // it is late, and is dropped
    }
    hears_nothing(w);
    assert_int_equal(router_wait_ms(&w->f.router), -1);
}

static void a_canceled_call_is_answered_once(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){.id = 1, .rank = 3, .head = ADD});
    uint32_t id = worker_takes(&w->workers[3], "");
    assert_int_equal(client_cancel(&w->c, 1), 0);
    hears(w, "1 ERROR CANCELED*");
    cancels_at(w, 3, id);
    assert_int_equal(client_cancel(&w->c, 1), 0); // its answer was on the way, so nothing happens
    worker_says(&w->f, &w->workers[3], id, "1");
    hears_nothing(w);
}

static void a_session_that_ends_cancels_what_it_has(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){.id = 1, .rank = 3, .head = ADD});
    uint32_t id = worker_takes(&w->workers[3], "");
    client_close(&w->c);
    cancels_at(w, 3, id);
    worker_says(&w->f, &w->workers[3], id, "1");
}

static struct record long_call(uint32_t id, uint64_t seq, const char *args, struct buf *body)
{
    char prefix[4];
    record_call_prefix(prefix, (uint32_t)strlen(ADD));
    buf_append(body, prefix, 4);
    buf_puts(body, ADD);
    buf_puts(body, args);
    return (struct record){
        .h = {.type = RECORD_CALL, .call = id, .rank = 0}, .body = body->data, .len = body->len, .seq = seq};
}

static void calls_begin_in_the_order_sent_even_if_small_ones_overtake(void **state)
{
    struct world *w = *state;
    static const struct {
        uint32_t id;
        uint64_t unfinished;
    } came[] = {{4, 1}, {2, 1}, {1, 3}, {3, UINT64_MAX}}; // seq = id
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(came); i++) {
        struct buf body = BUF_INIT(1 << 12);
        char args[8];
        snprintf(args, sizeof args, "[%u]", came[i].id);
        struct record r = long_call(came[i].id, came[i].id, args, &body);
        assert_int_equal(session_record(w->c.session, &r, came[i].unfinished, &err), 0);
        buf_done(&body);
        if (i == 1)
            assert_int_equal(worker_takes(&w->workers[0], ""), 0);
    }
    static const char *const order[] = {"[1]", "[2]", "[3]", "[4]"};
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        assert_int_not_equal(worker_takes(&w->workers[0], order[i]), 0);
}

static void a_call_held_up_by_an_incomplete_one_can_end(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    for (uint32_t id = 2; id <= 3; id++) {
        struct buf body = BUF_INIT(1 << 12);
        struct record r = long_call(id, id, "[]", &body);
        assert_int_equal(session_record(w->c.session, &r, 1, &err), 0);
        buf_done(&body);
    }
    struct record cancel = {.h = {.type = RECORD_CANCEL, .call = 2, .rank = RECORD_GROUP}, .seq = 4};
    assert_int_equal(session_record(w->c.session, &cancel, 1, &err), 0);
    hears(w, "2 ERROR CANCELED*");
    router_group_gone(&w->f.router, FIXTURE_UID);
    router_turn(&w->f.router);
    hears(w, "3 ERROR GONE*");
}

static void records_that_no_client_sends_end_the_session(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct record r = {.h = {.type = RECORD_RESULT, .call = 1, .rank = 0}, .body = "1", .len = 1, .seq = 1};
    assert_int_equal(session_record(w->c.session, &r, UINT64_MAX, &err), ERR_PROTO);
    r.h = (struct record_header){.type = RECORD_CALL, .flags = RECORD_PARTS, .call = 1, .rank = 0};
    assert_int_equal(session_record(w->c.session, &r, UINT64_MAX, &err), 0);
    hears_about(w, "1 ERROR INVALID", "does not support arguments in parts");
    r.h.type = RECORD_ARGS;
    assert_int_equal(session_record(w->c.session, &r, UINT64_MAX, &err), 0);
    hears_nothing(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST(one_to_all_gives_all_the_same_and_collects_in_rank_order),
        PROXY_TEST(an_empty_result_is_null),
        PROXY_TEST(a_call_whose_result_nobody_wants_tells_all_ranks_and_ends_when_all_have_answered),
        PROXY_TEST_EMPTY(only_a_worker_that_asks_hears_who_may_send_code),
        PROXY_TEST_EMPTY(the_list_of_an_only_rank_has_one_result),
        PROXY_TEST(an_error_of_such_a_call_is_told),
        PROXY_TEST(a_list_of_one_a_rank_is_split),
        PROXY_TEST(a_list_of_another_length_is_refused_and_reaches_no_rank),
        PROXY_TEST(dp_compute_is_strictly_one_element_a_rank),
        PROXY_TEST(rank_zero_gives_one_result_and_takes_the_arguments_whole),
        PROXY_TEST(a_call_to_one_rank_gives_one_result),
        PROXY_TEST(the_caller_may_override_the_declared_modes),
        PROXY_TEST(any_rank_is_the_least_busy_one),
        PROXY_TEST_EMPTY(any_rank_needs_no_other),
        PROXY_TEST(what_cannot_be_called_is_refused_by_name),
        PROXY_TEST(an_id_in_use_ends_the_session_and_one_answered_is_free),
        PROXY_TEST(the_same_id_of_two_clients_is_two_calls),
        PROXY_TEST(the_first_error_answers_and_the_rest_is_dropped),
        PROXY_TEST(a_worker_answers_only_what_it_was_asked),
        PROXY_TEST(a_deadline_answers_and_tells_the_ranks_that_are_late),
        PROXY_TEST(a_canceled_call_is_answered_once),
        PROXY_TEST(a_session_that_ends_cancels_what_it_has),
        PROXY_TEST(calls_begin_in_the_order_sent_even_if_small_ones_overtake),
        PROXY_TEST(a_call_held_up_by_an_incomplete_one_can_end),
        PROXY_TEST(records_that_no_client_sends_end_the_session),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fixture_cuts = true;
    return failed + cmocka_run_group_tests_name("in pieces", tests, NULL, NULL);
}
