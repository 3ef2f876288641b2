// SPDX-License-Identifier: Apache-2.0
// Arguments and results that take long to split or to join: each turn of the loop does one step of them. These tests
// check what may happen meanwhile, and that nothing else waits.
#include "operator/proxy/job.h"

#include "common/base/buf.h"
#include "common/base/fiber.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/proxy/jsonrpc.h"
#include "operator/proxy/tenant.h"
#include "tests/unit/operator/proxy/batch_case.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EACH "{\"method\":\"each\"}"
#define LENGTH ((size_t)800 << 10) // bytes of arguments
#define STEPS (LENGTH / JOB_STEP)  // least number of steps

// Jobs by themselves

struct counted {
    struct job job;
    size_t units;
    unsigned *at, done; // the turn in which the job was over
};

static void spend(struct job *j)
{
    struct counted *c = CONTAINER_OF(j, struct counted, job);
    for (size_t i = 0; i < c->units; i += 1000)
        fiber_spend(1000);
}

static void note(struct job *j)
{
    struct counted *c = CONTAINER_OF(j, struct counted, job);
    c->done = *c->at;
}

static void namespaces_take_turns_job_by_job(void **state)
{
    struct world *w = *state;
    struct router *r = &w->f.router;
    struct tenant *busy = tenant_get(r, "busy"), *other = tenant_get(r, "other");
    struct counted jobs[4];
    unsigned turn = 0;
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        jobs[i] = (struct counted){{.work = spend, .done = note}, .units = 3 * JOB_STEP, .at = &turn};
        job_begin(&jobs[i].job, i < 3 ? busy : other);
    }
    for (; router_wait_ms(r) == 0; turn++)
        router_turn(r);
    assert_in_range(jobs[0].done, 2, 4);
    assert_true(jobs[3].done > jobs[0].done && jobs[3].done < jobs[1].done && jobs[1].done < jobs[2].done);
    while (tenants_next_turn(r)) // pay for the work that was done
        ;
    assert_false(tenants_next_turn(r));
    tenant_unref(busy);
    tenant_unref(other);
}

// A namespace has a long job and other clients. Busy namespaces and a quiet one have work, too.
static void a_job_leaves_turns_to_its_namespace_and_to_others(void **state)
{
    struct world *w = *state;
    struct router *r = &w->f.router;
    enum { LONG = 100, OTHERS = 10 };
    for (unsigned busy = 0; busy <= OTHERS; busy += OTHERS) {
        struct tenant *t = tenant_get(r, "long"), *others[OTHERS];
        unsigned turn = 0, had = 0, owed = 0, worked = 0;
        struct counted job = {{.work = spend, .done = note}, .units = LONG * JOB_STEP, .at = &turn};
        char name[16];
        for (unsigned i = 0; i < busy; i++) {
            snprintf(name, sizeof name, "busy-%u", i);
            others[i] = tenant_get(r, name);
        }
        job_begin(&job.job, t);
        for (; jobs_wait(r); turn++) {
            for (unsigned i = 0; i < busy; i++)
                for (; tenant_has_turn(others[i]); worked++)
                    tenant_spend(others[i], 1);
            had += tenant_has_turn(t);
            router_turn(r);
            (void)tenants_next_turn(r);
        }
        while (!tenant_has_turn(t) && owed++ < LONG)
            (void)tenants_next_turn(r);
        assert_in_range(had, busy ? turn - 2 * OTHERS : turn,
                        turn); // it was paid for at once, because no other namespace had work
        assert_in_range(owed, 0, 1);
        assert_in_range(worked, busy ? turn * TENANT_TURN / 10 * 8 : 0, busy ? (turn + 2) * TENANT_TURN : 0);
        while (!list_empty(&r->charged))
            (void)tenants_next_turn(r);
        for (unsigned i = 0; i < busy; i++)
            tenant_unref(others[i]);
        tenant_unref(t);
    }
}

// Calls

// Returns in *ret a list with one string of letters for each rank. The caller frees it.
static void long_list(struct buf *ret)
{
    *ret = BUF_INIT(2 << 20);
    for (int i = 0; i < WORLD; i++) {
        buf_printf(ret, "%s[\"", i ? "," : "[");
        for (size_t n = 0; n < LENGTH / WORLD; n += 16)
            buf_printf(ret, "%c0123456789abcde", 'A' + i);
        buf_puts(ret, "\"]");
    }
    buf_puts(ret, "]");
}

static void sends_long(struct world *w, uint32_t id, const char *head)
{
    struct buf args;
    long_list(&args);
    sends_group(w, id, head, buf_str(&args));
    buf_done(&args);
}

static void each_takes_its_own(struct world *w)
{
    for (uint32_t i = 0; i < WORLD; i++) {
        struct wire_record *r = wire_next(&w->workers[i].wire);
        struct record_call call;
        struct err err = ERR_INIT;
        assert_non_null(r);
        assert_int_equal(record_call_decode(r->body, r->len, &call, &err), 0);
        assert_in_range(call.args_len, LENGTH / WORLD, LENGTH / WORLD + 32);
        assert_int_equal(call.args[2], 'A' + (int)i);
        worker_says(&w->f, &w->workers[i], r->h.call, "1");
        free(r);
    }
}

static void nobody_takes(struct world *w)
{
    for (uint32_t i = 0; i < WORLD; i++)
        assert_null(wire_next(&w->workers[i].wire));
}

static void long_arguments_are_split_in_steps(void **state)
{
    struct world *w = *state;
    sends_long(w, 1, EACH);
    nobody_takes(w);
    assert_in_range(fixture_turns(&w->f), STEPS, 4 * STEPS);
    each_takes_its_own(w);
    hears(w, "1 RESULT [1,1,1,1]");
    assert_int_equal(quota_used(w->f.router.bytes), 0);
}

static void later_calls_of_the_client_stay_behind_and_others_do_not(void **state)
{
    struct world *w = *state;
    struct client other;
    struct err err = ERR_INIT;
    client_open(&w->f, &other, "llama");
    sends_long(w, 1, EACH);
    sends_group(w, 2, ADD, "[2]");
    sends_group(w, 3, "{\"method\":\"add\",\"whenNotReady\":\"Refuse\"}", "[3]"); // the group is ready
    assert_int_equal(client_send(&other, &(struct call_text){.id = 1, .rank = 0, .head = ADD, .args = "[4]"}, &err), 0);
    uint32_t id = worker_takes(&w->workers[0], "[4]");
    assert_int_not_equal(id, 0);
    worker_says(&w->f, &w->workers[0], id, "5");
    assert_string_equal(client_hears(&other), "1 RESULT 5");
    fixture_turns(&w->f);
    each_takes_its_own(w);
    for (uint32_t i = 0; i < WORLD; i++)
        for (int k = 2; k <= 3; k++) {
            id = worker_takes(&w->workers[i], k == 2 ? "[2]" : "[3]");
            worker_says(&w->f, &w->workers[i], id, "2");
        }
    hears(w, "1 RESULT [1,1,1,1]");
    hears(w, "2 RESULT [2,2,2,2]");
    hears(w, "3 RESULT [2,2,2,2]");
    client_close(&other);
}

static void a_call_may_end_while_its_arguments_are_split(void **state)
{
    struct world *w = *state;
    sends_long(w, 1, EACH);
    router_turn(&w->f.router);
    assert_int_equal(client_cancel(&w->c, 1), 0);
    hears(w, "1 ERROR CANCELED each() of ml/llama was canceled by its client before it was sent to a rank");
    sends_long(w, 2, EACH); // before the job was begun
    assert_int_equal(client_cancel(&w->c, 2), 0);
    hears(w, "2 ERROR CANCELED *");
    sends_long(w, 3, "{\"method\":\"each\",\"timeoutMs\":50}");
    router_turn(&w->f.router);
    fixture_pass(&w->f, 50);
    hears_about(w, "3 ERROR TIMEOUT", "its arguments are long, and are still being split for its ranks");
    sends_long(w, 4, EACH);
    router_turn(&w->f.router);
    router_group_gone(&w->f.router, FIXTURE_UID);
    fixture_turns(&w->f);
    hears(w, "4 ERROR GONE *");
    nobody_takes(w);
    assert_int_equal(quota_used(w->f.router.bytes), 0);
}

static void a_client_may_go_while_its_arguments_are_split(void **state)
{
    struct world *w = *state;
    sends_long(w, 1, EACH);
    router_turn(&w->f.router);
    client_close(&w->c);
    fixture_turns(&w->f);
    nobody_takes(w);
    assert_int_equal(w->f.router.n_calls, 0);
    assert_int_equal(quota_used(w->f.router.bytes), 0);
}

static void a_rank_may_be_lost_and_come_again_meanwhile(void **state)
{
    struct world *w = *state;
    sends_long(w, 1, EACH);
    router_turn(&w->f.router);
    worker_hang_up(&w->f, &w->workers[2]);
    fixture_turns(&w->f);
    nobody_takes(w);
    worker_start(&w->f, &w->workers[2], 2, 1);
    assert_true(fixture_turns(&w->f) < STEPS); // the arguments are not split again
    each_takes_its_own(w);
    hears(w, "1 RESULT [1,1,1,1]");
}

static void what_is_wrong_with_long_arguments_is_said(void **state)
{
    struct world *w = *state;
    struct buf args;
    long_list(&args);
    args.data[args.len - 1] = ' ';
    sends_group(w, 1, EACH, buf_str(&args));
    args.data[args.len - 1] = '}';
    sends_group(w, 2, EACH, buf_str(&args));
    fixture_turns(&w->f);
    hears_about(w, "1 ERROR INVALID", "the arguments are not valid JSON at byte");
    hears_about(w, "2 ERROR INVALID", "the arguments are not valid JSON at byte");
    nobody_takes(w);
    buf_done(&args);
}

static void long_calls_wait_for_their_group_first(void **state)
{
    struct world *w = *state;
    sends_long(w, 1, EACH);
    assert_int_equal(fixture_turns(&w->f), 0);
    for (uint32_t i = 0; i < WORLD; i++)
        worker_start(&w->f, &w->workers[i], i, 1);
    nobody_takes(w);
    assert_true(fixture_turns(&w->f) >= STEPS - 1);
    each_takes_its_own(w);
    hears(w, "1 RESULT [1,1,1,1]");
}

// In a JSON-RPC message, the arguments are somewhere in the middle.
static void a_long_request_may_wait_for_its_group(void **state)
{
    struct world *w = *state;
    struct jsonrpc j;
    struct buf text = BUF_INIT(2 << 20);
    struct parts answer = {0};
    char got[64] = "";
    jsonrpc_init(&j, &w->f.router, "ml", "llama", 1 << 20, NULL);
    buf_puts(&text,
             "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"group.call\",\"params\":{\"method\":\"each\",\"perRank\":");
    struct buf args;
    long_list(&args);
    buf_append(&text, args.data, args.len);
    buf_puts(&text, "}}");
    struct blob *b = blob_new(JSONRPC_HEAD_MAX + text.len, NULL);
    memcpy(b->data + JSONRPC_HEAD_MAX, text.data, text.len);
    jsonrpc_input_long(&j, b, b->data + JSONRPC_HEAD_MAX, text.len);
    blob_unref(b);
    while (jsonrpc_reads(&j)) {
        assert_false(jsonrpc_next(&j, &answer));
        tenants_next_turn(&w->f.router);
    }
    for (uint32_t i = 0; i < WORLD; i++)
        worker_start(&w->f, &w->workers[i], i, 1);
    fixture_turns(&w->f);
    each_takes_its_own(w);
    for (int i = 0; i < 100 && !jsonrpc_next(&j, &answer); i++) // the namespace owes work
        tenants_next_turn(&w->f.router);
    parts_read(&answer, got, sizeof got - 1);
    assert_string_equal(got, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":[1,1,1,1]}");
    parts_done(&answer);
    jsonrpc_done(&j);
    buf_done(&text);
    buf_done(&args);
}

// Batches

// Two columns as JSON, or a safetensors document with a tensor "a" and a column "text": `rows` rows of `width` letters.
static struct body long_batch(struct batch_case *w, size_t rows, size_t width, bool tensor, int64_t first)
{
    struct buf text = BUF_INIT(4 << 20);
    int64_t values[ROWS_MAX];
    buf_puts(&text, "{\"text\":[");
    for (size_t i = 0; i < rows; i++) {
        values[i] = first + (int64_t)i;
        buf_printf(&text, "%s\"%0*zu\"", i ? "," : "", (int)width, i);
    }
    buf_puts(&text, "]");
    if (!tensor) {
        buf_puts(&text, ",\"a\":[");
        for (size_t i = 0; i < rows; i++)
            buf_printf(&text, "%s%lld", i ? "," : "", (long long)values[i]);
        buf_puts(&text, "]");
    }
    buf_puts(&text, "}");
    struct body b = tensor ? batch_of(values, rows, true, buf_str(&text), NULL, &w->memory)
                           : (struct body){arena_strndup(&w->memory, text.data, text.len), text.len};
    buf_done(&text);
    return b;
}

static void batches_go_and_come_in_steps(struct batch_case *w, bool tensor)
{
    enum { ROWS = 40 };
    const struct mode mode = {RECORD_DP_COMPUTE_PROTO, 0, NULL, NULL};
    struct body args = long_batch(w, ROWS, LENGTH / ROWS, tensor, 100), got;
    int64_t values[ROWS_MAX];
    batch_case_sends(w, &mode, &args);
    for (uint32_t rank = w->world; rank-- > 0;) {
        uint32_t id = batch_case_takes(w, rank, &got);
        assert_int_not_equal(id, 0);
        assert_int_equal(values_of(got.data, got.len, values, &w->memory), ROWS / w->world);
        assert_int_equal(values[0], 100 + (int64_t)rank * ROWS / w->world);
        batch_case_says(w, rank, id, &got); // returns its arguments
    }
    got = batch_case_hears(w);
    assert_int_equal(values_of(got.data, got.len, values, &w->memory), ROWS);
    for (size_t i = 0; i < ROWS; i++)
        assert_int_equal(values[i], 100 + i);
    assert_in_range(got.len, args.len - 200, args.len + 200);
}

static void long_columns_of_batches_are_split_and_joined_in_steps(void **state)
{
    (void)state;
    for (int cuts = 0; cuts < 2; cuts++) {
        struct batch_case *w = batch_case_new(4, NULL, NULL);
        fixture_cuts = cuts;
        for (int round = 0; round < 4; round++)
            batches_go_and_come_in_steps(w, round % 2);
        assert_int_equal(quota_used(w->f.router.bytes), 0);
        fixture_cuts = false;
        batch_case_free(w);
    }
}

static void results_are_joined_in_steps(void **state)
{
    (void)state;
    for (int tensor = 0; tensor < 2; tensor++) {
        struct batch_case *w = batch_case_new(2, NULL, NULL);
        struct body args = long_batch(w, 2, 10, tensor, 0), got;
        struct err err = ERR_INIT;
        batch_case_sends(w, &(struct mode){RECORD_DP_COMPUTE_PROTO, 0, NULL, NULL}, &args);
        struct body result = long_batch(w, 20, LENGTH / 20, tensor, 0);
        batch_case_says(w, 0, batch_case_takes(w, 0, &got), &result);
        uint32_t id = batch_case_takes(w, 1, &got);
        assert_int_equal(worker_answer_bytes(&w->f, &w->workers[1], id, RECORD_RESULT, result.data, result.len, &err),
                         0);
        assert_null(client_hears(&w->c));
        assert_true(fixture_turns(&w->f) >= 2 * STEPS - 1);
        got = batch_case_hears(w);
        int64_t values[ROWS_MAX];
        assert_int_equal(values_of(got.data, got.len, values, &w->memory), 40);
        batch_case_free(w);
    }
}

static void a_call_may_end_while_its_results_are_joined(void **state)
{
    (void)state;
    for (int tensor = 0; tensor < 2; tensor++)
        for (int how = 0; how < 3; how++) {
            struct batch_case *w = batch_case_new(1, NULL, NULL);
            struct body args = long_batch(w, 2, 10, tensor, 0), got;
            struct err err = ERR_INIT;
            batch_case_sends(w, &(struct mode){RECORD_DP_COMPUTE_PROTO, 0, NULL, ",\"timeoutMs\":50"}, &args);
            struct body result = long_batch(w, 20, LENGTH / 20, tensor, 0);
            uint32_t id = batch_case_takes(w, 0, &got);
            fixture_cuts = how == 2; // the head is a piece of its own
            assert_int_equal(
                worker_answer_bytes(&w->f, &w->workers[0], id, RECORD_RESULT, result.data, result.len, &err), 0);
            fixture_cuts = false;
            if (how == 0) {
                assert_int_equal(client_cancel(&w->c, w->id), 0);
                assert_true(strstr(client_hears(&w->c), " ERROR CANCELED "));
            } else if (how == 1) {
                client_close(&w->c);
            } else {
                fixture_pass(&w->f, 50);
                assert_non_null(strstr(client_hears(&w->c), "their results are long, and are still being joined"));
            }
            fixture_turns(&w->f);
            assert_int_equal(w->f.router.n_calls, 0);
            batch_case_free(w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST(namespaces_take_turns_job_by_job),
        PROXY_TEST(a_job_leaves_turns_to_its_namespace_and_to_others),
        PROXY_TEST(long_arguments_are_split_in_steps),
        PROXY_TEST(later_calls_of_the_client_stay_behind_and_others_do_not),
        PROXY_TEST(a_call_may_end_while_its_arguments_are_split),
        PROXY_TEST(a_client_may_go_while_its_arguments_are_split),
        PROXY_TEST(a_rank_may_be_lost_and_come_again_meanwhile),
        PROXY_TEST(what_is_wrong_with_long_arguments_is_said),
        PROXY_TEST_EMPTY(long_calls_wait_for_their_group_first),
        PROXY_TEST_EMPTY(a_long_request_may_wait_for_its_group),
        cmocka_unit_test(long_columns_of_batches_are_split_and_joined_in_steps),
        cmocka_unit_test(results_are_joined_in_steps),
        cmocka_unit_test(a_call_may_end_while_its_results_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
