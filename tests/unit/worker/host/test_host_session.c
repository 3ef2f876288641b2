// SPDX-License-Identifier: Apache-2.0
// A worker against a proxy in the same process, over a Unix socket.
#include "worker/host/host_session.h"

#include "common/base/mem.h"
#include "common/ws/memory.h"
#include "tests/unit/worker/host/host_proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture {
    struct loop *loop;
    struct host_proxy proxy;
    // The worker
    struct cadre_worker worker;
    struct cadre_module_info info;
    cadre_class class;
    struct module module;
    struct method_executor *executor;
    struct role role;
    struct roles roles;
    struct host_session *session;
    int ready, lost, over, stopped, destroyed;
    struct err last; // why a connection was lost, and when the next attempt begins
    int64_t retry_ms;
    int n_first; // n_first: how often on_lost() was called with `first`
};

// The served methods: echo(...), and hold(), which runs until it may go on or is canceled.
static atomic_int holding, go_on;

static cadre_result create(cadre_worker *worker, const char *init, size_t len, void **ret)
{
    static const char *const beside[] = {"meet"};
    (void)init, (void)len;
    *ret = NULL;
    return cadre_concurrency_group(worker, "beside", 2, beside, 1);
}

static atomic_int here; // how many calls of meet() run; meet() waits for another one

static cadre_result meet(void *self, cadre_call *call)
{
    (void)self;
    atomic_fetch_add(&here, 1);
    while (!cadre_call_canceled(call) && atomic_load(&here) < 2)
        usleep(1000);
    return cadre_call_canceled(call) ? CADRE_CANCELED : CADRE_OK;
}

static cadre_result echo(void *self, cadre_call *call)
{
    size_t len;
    (void)self;
    const char *args = cadre_args(call, &len);
    return cadre_return_json(call, args, len);
}

static cadre_result hold(void *self, cadre_call *call)
{
    (void)self;
    atomic_fetch_add(&holding, 1);
    while (!cadre_call_canceled(call) && !atomic_load(&go_on))
        usleep(1000);
    return cadre_call_canceled(call) ? CADRE_CANCELED : CADRE_OK;
}

static int turns; // used only by the executor's thread

static cadre_result turn(void *self, cadre_call *call)
{
    (void)self;
    return cadre_return_int64(call, ++turns);
}

static const cadre_method methods[] = {
    {"echo", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, echo, "gives back"},
    {"hold", CADRE_ALL_TO_ALL, CADRE_EXECUTE_RANK_ZERO, hold, NULL},
    {"turn", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, turn, NULL},
    {"meet", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, meet, NULL},
};

// The worker

static void on_created(void *ctx, const struct err *err)
{
    struct fixture *f = ctx;
    assert_int_equal(err->code, 0);
    f->ready = 0;
}

static void on_destroyed(void *ctx)
{
    struct fixture *f = ctx;
    f->destroyed++;
}

static void on_ready(void *ctx)
{
    struct fixture *f = ctx;
    f->ready++;
}

static void on_lost(void *ctx, const struct err *err, int64_t retry_ms, bool first)
{
    struct fixture *f = ctx;
    f->n_first += first;
    f->last = *err;
    f->retry_ms = retry_ms;
    f->lost++;
}

static void on_over(void *ctx, const struct err *err)
{
    struct fixture *f = ctx;
    f->last = *err;
    f->over++;
}

static void on_stopped(void *ctx)
{
    struct fixture *f = ctx;
    f->stopped++;
}

#define UNTIL(f, condition) HOST_UNTIL(&(f)->proxy, condition)

static bool came(const struct fixture *f, const char *text)
{
    return host_proxy_came(&f->proxy, text);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    struct err err = ERR_INIT;
    f->loop = loop_new();
    host_proxy_init(&f->proxy, f->loop);
    f->worker = (struct cadre_worker){.rank = 2, .world_size = 4};
    f->class = (cadre_class){"Echo", create, NULL, methods, ARRAY_LEN(methods)};
    f->info = (cadre_module_info){CADRE_ABI, "test", &f->class, 1};
    f->module = (struct module){"test.so", &f->info};
    f->executor = method_executor_new(f->loop, SESSION_CALLS_MAX + 1, false);
    f->ready = -1;
    atomic_store(&holding, 0);
    atomic_store(&go_on, 0);
    atomic_store(&here, 0);
    turns = 0;
    struct instance_config config = {f->executor, &f->worker, &f->class, NULL, on_created, on_destroyed, f};
    f->role = (struct role){.class = &f->class, .instance = instance_new(&config, &err), .roles = &f->roles};
    f->roles = (struct roles){.at = &f->role, .n = 1};
    UNTIL(f, f->ready == 0);
    host_proxy_start(&f->proxy);
    *state = f;
    return 0;
}

static void worker_start(struct fixture *f)
{
    struct err err = ERR_INIT;
    struct host_session_config config = {
        .address = f->proxy.address,
        .group = "uid-1",
        .ticket = "first",
        .attempt = 3,
        .worker = &f->worker,
        .module = &f->module,
        .roles = &f->roles,
        .executor = f->executor,
        .shares = true,
        .seed = 1,
        .on_ready = on_ready,
        .on_lost = on_lost,
        .on_over = on_over,
        .on_stopped = on_stopped,
        .ctx = f,
    };
    f->session = host_session_new(f->loop, &config, &err);
    assert_non_null(f->session);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    host_session_free(f->session);
    instance_destroy(f->role.instance);
    UNTIL(f, f->destroyed);
    method_executor_free(f->executor);
    published_done(&f->worker.published);
    host_proxy_done(&f->proxy);
    loop_free(f->loop);
    free(f);
    return 0;
}

static void start_ready(struct fixture *f)
{
    worker_start(f);
    UNTIL(f, f->ready == 1);
    buf_reset(&f->proxy.trace);
}

static void a_worker_says_who_it_is_and_what_it_can(void **state)
{
    struct fixture *f = *state;
    char want[512];
    worker_start(f);
    UNTIL(f, f->ready == 1);
    snprintf(want, sizeof want,
             "HELLO 0 {\"role\":\"worker\",\"version\":1,\"software\":\"cadre-worker " CADRE_VERSION
             "\",\"group\":\"uid-1\",\"rank\":2,"
             "\"attempt\":3,\"ticket\":\"first\",\"pid\":%d,\"module\":\"test\",\"class\":\"Echo\",\"methods\":["
             "{\"name\":\"echo\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\",\"doc\":\"gives back\"},"
             "{\"name\":\"hold\",\"dispatch\":\"ALL_TO_ALL\",\"execute\":\"RANK_ZERO\"},"
             "{\"name\":\"turn\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"},"
             "{\"name\":\"meet\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"}]}\n",
             (int)getpid());
    assert_string_equal(buf_str(&f->proxy.trace), want);
}

static void calls_are_answered_in_the_order_in_which_they_came(void **state)
{
    struct fixture *f = *state;
    start_ready(f);
    host_proxy_call(&f->proxy, 7, "{\"method\":\"echo\"}", "[1]");
    host_proxy_call(&f->proxy, 5, "{\"method\":\"echo\",\"timeoutMs\":60000}", "{\"x\":\"2\"}");
    host_proxy_call(&f->proxy, 9, "{\"method\":\"echo\"}", "");
    UNTIL(f, came(f, "RESULT 9"));
    assert_string_equal(buf_str(&f->proxy.trace), "RESULT 7 [1]\nRESULT 5 {\"x\":\"2\"}\nRESULT 9 []\n");
}

static char *long_args(void)
{
    size_t len = (size_t)3 << 20;
    char *args = xmalloc(len + 1);
    memset(args, ' ', len);
    memcpy(args, "[1", 2);
    args[len - 1] = ']';
    args[len] = '\0';
    return args;
}

// A small call overtakes a long one on the wire, which comes in pieces of 1 MiB. If the proxy says that both calls have
// the same caller, the worker must keep their order.
static void a_small_call_waits_for_a_long_one_of_its_caller(void **state)
{
    struct fixture *f = *state;
    _cleanup_(free_p) char *args = long_args();
    start_ready(f);
    host_proxy_call(&f->proxy, 1, "{\"method\":\"turn\"}", args);
    f->proxy.flags = RECORD_ORDERED;
    host_proxy_call(&f->proxy, 2, "{\"method\":\"turn\"}", "[2]");
    UNTIL(f, came(f, "RESULT 2"));
    assert_string_equal(buf_str(&f->proxy.trace), "RESULT 1 1\nRESULT 2 2\n");
}

static void a_small_call_does_not_wait_for_a_long_one_of_another_caller(void **state)
{
    struct fixture *f = *state;
    _cleanup_(free_p) char *args = long_args();
    start_ready(f);
    host_proxy_call(&f->proxy, 1, "{\"method\":\"turn\"}", args);
    host_proxy_call(&f->proxy, 2, "{\"method\":\"turn\"}", "[2]");
    UNTIL(f, came(f, "RESULT 1"));
    assert_string_equal(buf_str(&f->proxy.trace), "RESULT 2 1\nRESULT 1 2\n");
}

static void a_call_that_makes_no_sense_is_answered_and_harms_nothing(void **state)
{
    struct fixture *f = *state;
    start_ready(f);
    host_proxy_call(&f->proxy, 1, "{\"method\":", "");
    host_proxy_call(&f->proxy, 2, "{}", "");
    host_proxy_call(&f->proxy, 3, "{\"method\":\"echo\"}", "[1");
    host_proxy_call(&f->proxy, 4, "{\"method\":\"nothing\"}", "");
    host_proxy_call(&f->proxy, 5, "{\"method\":\"echo\"}", "[5]");
    UNTIL(f, came(f, "RESULT 5 [5]"));
    assert_true(came(f, "ERROR 1 {\"code\":\"INVALID\",\"message\":\"the head of the call is not valid JSON"));
    assert_true(came(f, "ERROR 2 {\"code\":\"INVALID\",\"message\":\"the head of the call has no \\\"method\\\""));
    assert_true(
        came(f, "ERROR 3 {\"code\":\"INVALID\",\"message\":\"echo(): the arguments cannot be read: not valid JSON"));
    assert_true(came(f, "ERROR 4 {\"code\":\"NOT_FOUND\",\"message\":\"class Echo has no method nothing; it has echo, "
                        "hold, turn, meet\",\"ran\":false}"));
    assert_int_equal(f->lost, 0);
}

static void what_waits_is_canceled_at_once_and_what_runs_is_told(void **state)
{
    struct fixture *f = *state;
    start_ready(f);
    host_proxy_call(&f->proxy, 1, "{\"method\":\"hold\"}", "");
    host_proxy_call(&f->proxy, 2, "{\"method\":\"echo\"}", "[2]");
    UNTIL(f, atomic_load(&holding) == 1);
    host_proxy_send(&f->proxy, RECORD_CANCEL, 2, "");
    host_proxy_send(&f->proxy, RECORD_CANCEL, 99, ""); // its answer may be on the way: this has no effect
    UNTIL(f, came(f, "ERROR 2"));
    assert_string_equal(
        buf_str(&f->proxy.trace),
        "ERROR 2 {\"code\":\"CANCELED\",\"message\":\"canceled before it could begin\",\"ran\":false}\n");
    host_proxy_send(&f->proxy, RECORD_CANCEL, 1, "");
    UNTIL(f, came(f, "ERROR 1 {\"code\":\"CANCELED\""));
}

static void a_concurrency_group_runs_beside_the_others(void **state)
{
    struct fixture *f = *state;
    start_ready(f);
    host_proxy_call(&f->proxy, 1, "{\"method\":\"hold\"}", "");
    host_proxy_call(&f->proxy, 2, "{\"method\":\"meet\"}", "");
    host_proxy_call(&f->proxy, 3, "{\"method\":\"echo\"}", "[3]"); // hold() does not answer any more
    host_proxy_call(&f->proxy, 4, "{\"method\":\"meet\"}", "");
    UNTIL(f, came(f, "RESULT 2 null") && came(f, "RESULT 4 null") && atomic_load(&holding) == 1);
    assert_false(came(f, "RESULT 3"));
    atomic_store(&go_on, 1);
    UNTIL(f, came(f, "RESULT 1 null\nRESULT 3 [3]"));
}

static void a_deadline_is_answered_when_it_passes(void **state)
{
    struct fixture *f = *state;
    start_ready(f);
    host_proxy_call(&f->proxy, 1, "{\"method\":\"hold\",\"timeoutMs\":30}", "");
    host_proxy_call(&f->proxy, 2, "{\"method\":\"echo\",\"timeoutMs\":1}", "[2]");
    UNTIL(f, came(f, "ERROR 1") && (came(f, "ERROR 2") || came(f, "RESULT 2")));
    assert_true(came(f, "ERROR 1 {\"code\":\"TIMEOUT\",\"message\":\"hold(): the deadline of 30 ms passed"));
    host_proxy_call(&f->proxy, 3, "{\"method\":\"echo\"}", "[3]"); // hold() has noticed, and does not answer any more
    UNTIL(f, came(f, "RESULT 3 [3]"));
    assert_false(came(f, "CANCELED"));
}

static void more_calls_than_may_wait_are_refused_one_by_one(void **state)
{
    struct fixture *f = *state;
    start_ready(f);
    for (uint32_t i = 1; i <= SESSION_CALLS_MAX + 1; i++)
        host_proxy_call(&f->proxy, i, i == 1 ? "{\"method\":\"hold\"}" : "{\"method\":\"echo\"}", "");
    UNTIL(f, came(f, "ERROR 1025"));
    assert_string_equal(buf_str(&f->proxy.trace),
                        "ERROR 1025 {\"code\":\"LIMIT\",\"message\":\"1024 calls wait for rank 2 "
                        "already; call again later\",\"ran\":false}\n");
    atomic_store(&go_on, 1);
    UNTIL(f, came(f, "RESULT 1024"));
}

static void a_proxy_that_breaks_the_protocol_is_left_with_a_reason(void **state)
{
    struct fixture *f = *state;
    start_ready(f);
    host_proxy_call(&f->proxy, 1, "{\"method\":\"hold\"}", "");
    UNTIL(f, atomic_load(&holding) == 1);
    host_proxy_call(&f->proxy, 1, "{\"method\":\"echo\"}", "");
    UNTIL(f, f->lost == 1);
    assert_string_equal(f->last.msg, "call id 1 is in use");
    UNTIL(f, came(f, "closed 1002 call id 1 is in use"));
    UNTIL(f, f->ready == 2); // the worker has dialed again
    host_proxy_send(&f->proxy, RECORD_HEARTBEAT, 0, "");
    UNTIL(f, f->lost == 2);
    assert_string_equal(f->last.msg, "a HEARTBEAT, which workers do not support");
}

static void calls_before_the_welcome_are_refused(void **state)
{
    struct fixture *f = *state;
    f->proxy.welcome = NULL;
    worker_start(f);
    UNTIL(f, f->proxy.n_hello == 1);
    host_proxy_call(&f->proxy, 1, "{\"method\":\"echo\"}", "");
    UNTIL(f, f->lost == 1);
    assert_string_equal(f->last.msg, "a CALL before the WELCOME");
}

// The second of two calls with the same head is not parsed.
static void a_lost_connection_cancels_its_calls_and_is_made_again_with_the_next_ticket(void **state)
{
    struct fixture *f = *state;
    f->proxy.welcome = "{\"ticket\":\"second\"}";
    start_ready(f);
    host_proxy_call(&f->proxy, 1, "{\"method\":\"hold\"}", "");
    host_proxy_call(&f->proxy, 2, "{\"method\":\"echo\"}", "");
    UNTIL(f, atomic_load(&holding) == 1);
    host_proxy_stop(&f->proxy);
    UNTIL(f, f->lost >= 2); // it also retries while nobody listens
    assert_in_range(f->retry_ms, SESSION_RETRY_MIN_MS / 2, SESSION_RETRY_MAX_MS);
    assert_int_equal(f->n_first, 1);
    buf_reset(&f->proxy.trace);
    host_proxy_start(&f->proxy);
    UNTIL(f, f->ready == 2);
    assert_true(came(f, "\"ticket\":\"second\""));
    host_proxy_call(&f->proxy, 3, "{\"method\":\"echo\"}", "[3]"); // hold() was canceled, and echo() never ran
    UNTIL(f, came(f, "RESULT 3 [3]"));
    assert_false(came(f, "RESULT 2") || came(f, "ERROR"));
}

static void a_goodbye_is_reported_and_the_proxy_dialed_again(void **state)
{
    struct fixture *f = *state;
    start_ready(f);
    host_proxy_send(&f->proxy, RECORD_GOODBYE, 0, "{\"reason\":\"attempt 3 is over\"}");
    UNTIL(f, f->lost == 1);
    assert_non_null(strstr(f->last.msg, "says goodbye: attempt 3 is over"));
    UNTIL(f, f->ready == 2);
}

static void who_comes_too_early_comes_again_soon_and_then_less_often(void **state)
{
    struct fixture *f = *state;
    int64_t most = SESSION_AGAIN_MS;
    f->proxy.welcome = NULL;
    worker_start(f);
    UNTIL(f, f->proxy.n_hello == 1);
    for (int i = 1; i <= 3; i++, most *= 2) {
        UNTIL(f, f->proxy.n_hello == i && f->proxy.peer);
        host_proxy_send(&f->proxy, RECORD_ERROR, 0, "{\"code\":\"UNAVAILABLE\",\"message\":\"not known yet\"}");
        UNTIL(f, f->lost == i);
        assert_non_null(strstr(f->last.msg, "refuses this worker: not known yet"));
        assert_in_range(f->retry_ms, most / 2, most);
    }
}

// Another attempt would get the same answer: what has ended stays ended, and a ticket is valid once.
static void who_is_not_wanted_any_more_does_not_insist(void **state)
{
    struct fixture *f = *state;
    f->proxy.welcome = NULL;
    worker_start(f);
    UNTIL(f, f->proxy.n_hello == 1);
    host_proxy_send(&f->proxy, RECORD_ERROR, 0, "{\"code\":\"CONFLICT\",\"message\":\"attempt 3 is over\"}");
    UNTIL(f, f->lost == 1);
    assert_non_null(strstr(f->last.msg, "refuses this worker: attempt 3 is over"));
    assert_in_range(f->retry_ms, SESSION_REFUSED_MS / 2, SESSION_REFUSED_MS);
    assert_false(host_session_up(f->session));
    host_session_free(f->session);
    worker_start(f);
    UNTIL(f, f->proxy.n_hello == 2);
    host_proxy_send(&f->proxy, RECORD_ERROR, 0, "{\"code\":\"GONE\",\"message\":\"the group was deleted\"}");
    UNTIL(f, f->over == 1);
    assert_non_null(strstr(f->last.msg, "refuses this worker: the group was deleted"));
    assert_int_equal(f->lost, 1);
}

static void one_that_has_nothing_to_serve_any_more_still_stops(void **state)
{
    struct fixture *f = *state;
    start_ready(f);
    host_proxy_send(&f->proxy, RECORD_ERROR, 0, "{\"code\":\"GONE\",\"message\":\"the group was deleted\"}");
    UNTIL(f, f->over == 1);
    host_session_stop(f->session);
    UNTIL(f, f->stopped == 1);
    assert_int_equal(f->proxy.n_hello, 1);
}

static void a_close_with_1008_is_a_refusal_too(void **state)
{
    struct fixture *f = *state;
    start_ready(f);
    assert_true(host_session_up(f->session));
    ws_session_close(f->proxy.peer, FRAME_CLOSE_POLICY, "attempt 3 is over");
    UNTIL(f, f->lost == 1);
    assert_in_range(f->retry_ms, SESSION_REFUSED_MS / 2, SESSION_REFUSED_MS);
}

static void stopping_refuses_what_waits_and_says_goodbye_after_what_runs(void **state)
{
    struct fixture *f = *state;
    start_ready(f);
    host_proxy_call(&f->proxy, 1, "{\"method\":\"hold\"}", "");
    host_proxy_call(&f->proxy, 2, "{\"method\":\"echo\"}", "");
    UNTIL(f, atomic_load(&holding) == 1);
    host_session_stop(f->session);
    host_session_stop(f->session);
    UNTIL(f, f->stopped == 1 && !f->proxy.peer);
    assert_string_equal(buf_str(&f->proxy.trace),
                        "ERROR 2 {\"code\":\"UNAVAILABLE\",\"message\":\"the worker was told to stop\","
                        "\"ran\":false}\n"
                        "ERROR 1 {\"code\":\"CANCELED\",\"message\":\"hold() failed (cadre_result 6) and did not say "
                        "why\"}\n"
                        "GOODBYE 0 {\"reason\":\"the worker was told to stop\"}\n"
                        "closed 1001 \n");
    assert_int_equal(f->lost, 0);
}

static void a_worker_without_a_proxy_stops_too(void **state)
{
    struct fixture *f = *state;
    host_proxy_stop(&f->proxy);
    worker_start(f);
    UNTIL(f, f->lost == 1);
    host_session_stop(f->session);
    UNTIL(f, f->stopped == 1);
}

static void an_address_that_makes_no_sense_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct host_session_config config = {
        .address = "nonsense", .worker = &f->worker, .module = &f->module, .roles = &f->roles};
    assert_null(host_session_new(f->loop, &config, &err));
    assert_int_equal(err.code, ERR_INVALID);
}

static void host_proxy_again(struct fixture *f)
{
    int n = f->proxy.n_areas;
    host_proxy_stop(&f->proxy);
    host_proxy_start(&f->proxy);
    UNTIL(f, f->proxy.n_areas == n + 1);
}

static void what_was_lent_when_a_connection_ended_is_not_used_again(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct memory *probe = memory_new(MEMORY_PROBE, &err);
    _cleanup_(free_p) char *args = long_args();
    char welcome[64];
    assert_non_null(probe);
    snprintf(welcome, sizeof welcome, "{\"memory\":%d}", memory_area(probe)->fd);
    f->proxy.welcome = welcome;
    f->proxy.shares = true;
    worker_start(f);
    UNTIL(f, f->proxy.n_areas == 1);
    uint32_t first = f->proxy.last_area;
    host_proxy_again(f);
    assert_int_equal(f->proxy.last_area, first); // nothing of it was lent
    host_proxy_call(&f->proxy, 1, "{\"method\":\"echo\"}", args);
    UNTIL(f, came(f, "RESULT 1 [1"));
    host_proxy_again(f);
    assert_int_not_equal(f->proxy.last_area, first);
    memory_free(probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define SESSION_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        SESSION_TEST(a_worker_says_who_it_is_and_what_it_can),
        SESSION_TEST(calls_are_answered_in_the_order_in_which_they_came),
        SESSION_TEST(a_small_call_waits_for_a_long_one_of_its_caller),
        SESSION_TEST(a_small_call_does_not_wait_for_a_long_one_of_another_caller),
        SESSION_TEST(a_call_that_makes_no_sense_is_answered_and_harms_nothing),
        SESSION_TEST(what_waits_is_canceled_at_once_and_what_runs_is_told),
        SESSION_TEST(a_concurrency_group_runs_beside_the_others),
        SESSION_TEST(a_deadline_is_answered_when_it_passes),
        SESSION_TEST(more_calls_than_may_wait_are_refused_one_by_one),
        SESSION_TEST(a_proxy_that_breaks_the_protocol_is_left_with_a_reason),
        SESSION_TEST(calls_before_the_welcome_are_refused),
        SESSION_TEST(a_lost_connection_cancels_its_calls_and_is_made_again_with_the_next_ticket),
        SESSION_TEST(a_goodbye_is_reported_and_the_proxy_dialed_again),
        SESSION_TEST(who_comes_too_early_comes_again_soon_and_then_less_often),
        SESSION_TEST(who_is_not_wanted_any_more_does_not_insist),
        SESSION_TEST(one_that_has_nothing_to_serve_any_more_still_stops),
        SESSION_TEST(a_close_with_1008_is_a_refusal_too),
        SESSION_TEST(stopping_refuses_what_waits_and_says_goodbye_after_what_runs),
        SESSION_TEST(a_worker_without_a_proxy_stops_too),
        SESSION_TEST(what_was_lent_when_a_connection_ended_is_not_used_again),
        SESSION_TEST(an_address_that_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
