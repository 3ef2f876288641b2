// SPDX-License-Identifier: Apache-2.0
// Two groups of real processes, an actor and a critic, behind one gateway. Objects stay on the workers, and go from one
// group to the other without passing the gateway.
#include "sdk/c/include/cadre/client.h"
#include "tests/unit/support/gateway_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define STORE_BYTES "20000000"
enum { RANKS = 2, ROWS = 1 << 20 }; // rows of float: 4 MiB

struct group_case {
    const char *uid, *name, *module, *class;
    pid_t pids[RANKS];
};

static struct gateway_fixture f;
static struct group_case actor = {"uid-actor", "actor", TENSOR_SO, "Actor", {0}},
                         critic = {"uid-critic", "critic", TENSOR_SO, "Critic", {0}},
                         echo = {"uid-echo", "echo", ECHO_SO, "Echo", {0}};
static cadre_client *client;

struct outcome {
    bool over;
    cadre_client_code code;
    cadre_client_error error;
    struct buf result;
};

static struct outcome last;

static void on_done(void *ctx, const cadre_client_answer *a)
{
    (void)ctx;
    last.over = true;
    last.code = a->error ? a->error->code : CADRE_CLIENT_OK;
    if (a->error)
        last.error = *a->error;
    buf_reset(&last.result);
    if (!a->error)
        buf_append(&last.result, a->result.text, a->result.len);
}

static bool answered(cadre_client *c)
{
    cadre_client_process(c);
    return last.over;
}

// Gateway and client share this thread.
static cadre_client_code ask_with(cadre_client *c, cadre_client_request *r)
{
    cadre_client_error error;
    last.over = false;
    r->done = on_done;
    r->timeout_ms = PATIENCE_MS;
    if (cadre_client_start(c, r, NULL, &error) != CADRE_CLIENT_OK)
        fail_msg("%s", error.message);
    GATEWAY_UNTIL(&f, answered(c));
    return last.code;
}

static cadre_client_request request(const struct group_case *g, const char *method, const char *args)
{
    cadre_client_request r;
    cadre_client_request_init(&r, method);
    r.group = g->name;
    if (args)
        r.args = (cadre_client_json){args, strlen(args)};
    return r;
}

static void must(cadre_client_request r)
{
    if (ask_with(client, &r) != CADRE_CLIENT_OK)
        fail_msg("%s(): %s %s", r.method, last.error.name, last.error.message);
}

static void must_fail(cadre_client_request r, cadre_client_code code, const char *why)
{
    if (ask_with(client, &r) == CADRE_CLIENT_OK)
        fail_msg("%s() gave %s", r.method, buf_str(&last.result));
    if (last.error.code != code || !strstr(last.error.message, why))
        fail_msg("%s(): %s %s", r.method, last.error.name, last.error.message);
}

static char *take_reference(void)
{
    assert_non_null(strstr(buf_str(&last.result), "{\"$ref\":\"cadre:1:"));
    return xstrdup(buf_str(&last.result));
}

static cadre_client *open_client(void)
{
    cadre_client_options o;
    cadre_client_error error;
    cadre_client *c;
    char url[160];
    snprintf(url, sizeof url, "ws://%s", f.address);
    cadre_client_options_init(&o);
    o.address = url;
    o.ns = "ml";
    o.token = "alice";
    if (cadre_client_open(&o, &c, &error) != CADRE_CLIENT_OK)
        fail_msg("%s", error.message);
    return c;
}

// Processes

static void start_rank(struct group_case *g, uint32_t rank)
{
    char ticket[256], env[7][320], connect[160];
    gateway_fixture_ticket(ticket, g->uid, 1, rank, 0);
    snprintf(connect, sizeof connect, "ws://%s/v1/connect", f.address);
    snprintf(env[0], sizeof env[0], "RANK=%u", rank);
    snprintf(env[1], sizeof env[1], "WORLD_SIZE=%d", RANKS);
    snprintf(env[2], sizeof env[2], "CADRE_TICKET=%s", ticket);
    snprintf(env[3], sizeof env[3], "CADRE_GROUP_UID=%s", g->uid);
    snprintf(env[4], sizeof env[4], "CADRE_ATTEMPT=1");
    snprintf(env[5], sizeof env[5], "CADRE_STORE_BYTES=" STORE_BYTES);
    const char *const argv[] = {WORKER, "--module", g->module, "--class", g->class, "--connect", connect, NULL};
    const char *const envp[] = {env[0], env[1], env[2], env[3], env[4], env[5], NULL};
    assert_int_equal(posix_spawn(&g->pids[rank], WORKER, NULL, NULL, (char **)argv, (char **)envp), 0);
}

static bool ended(struct group_case *g, uint32_t rank)
{
    if (g->pids[rank] && waitpid(g->pids[rank], NULL, WNOHANG) == g->pids[rank])
        g->pids[rank] = 0;
    return !g->pids[rank];
}

static void end_rank(struct group_case *g, uint32_t rank, int signo)
{
    if (!g->pids[rank])
        return;
    kill(g->pids[rank], signo);
    GATEWAY_UNTIL(&f, ended(g, rank));
}

static void start_group(struct group_case *g)
{
    const struct group_facts facts = {
        .uid = g->uid, .ns = "ml", .name = g->name, .world = RANKS, .attempt = 1, .oldest = 1};
    router_group_set(gateway_router(f.gateway), &facts);
    for (uint32_t i = 0; i < RANKS; i++)
        start_rank(g, i);
}

static int setup(void **state)
{
    (void)state;
    gateway_fixture_start(&f, NULL, NULL);
    last = (struct outcome){.result = BUF_INIT(64 << 20)};
    start_group(&actor);
    start_group(&critic);
    client = open_client();
    return 0;
}

static void end_group(struct group_case *g)
{
    for (uint32_t i = 0; i < RANKS; i++)
        end_rank(g, i, SIGTERM);
}

static int teardown(void **state)
{
    (void)state;
    cadre_client_close(client);
    end_group(&actor);
    end_group(&critic);
    end_group(&echo);
    gateway_fixture_stop(&f);
    buf_done(&last.result);
    return 0;
}

// Batches

static void *batch_of(size_t rows, float first, size_t *ret_len)
{
    float *values = xcalloc(rows, sizeof *values);
    void *batch;
    cadre_client_error error;
    for (size_t i = 0; i < rows; i++)
        values[i] = first + (float)i;
    const cadre_client_tensor t = {
        .name = "a", .dtype = "F32", .shape = {rows}, .n_dims = 1, .data = values, .len = rows * sizeof *values};
    assert_int_equal(cadre_client_batch_write(&t, 1, NULL, NULL, &batch, ret_len, &error), CADRE_CLIENT_OK);
    free(values);
    return batch;
}

static char *put_batch(const struct group_case *g, size_t rows)
{
    cadre_client_request r = request(g, "object.put", NULL);
    void *batch = batch_of(rows, 0, &r.batch_len);
    r.batch = batch;
    r.dispatch = CADRE_CLIENT_DP_COMPUTE_PROTO;
    must(r);
    free(batch);
    return take_reference();
}

static char *keep(const struct group_case *g, const char *method, const char *args)
{
    cadre_client_request r = request(g, method, args);
    r.by_reference = 1;
    must(r);
    return take_reference();
}

static uint64_t passed(void)
{
    const struct gateway_counters c = gateway_fixture_counters(&f);
    return c.bytes_in + c.bytes_out;
}

// Row i contains i. The actor adds its rank, and the critic adds -10.
static void assert_rows(size_t rows, float (*want)(size_t i, size_t rows))
{
    cadre_client_tensor t;
    cadre_client_error error;
    const cadre_client_json batch = {buf_str(&last.result), last.result.len};
    if (cadre_client_batch_tensor(batch, "a", &t, &error) != CADRE_CLIENT_OK)
        fail_msg("%s", error.message);
    assert_int_equal(t.shape[0], rows);
    for (size_t i = 0; i < rows; i++) {
        float v;
        memcpy(&v, (const char *)t.data + i * sizeof v, sizeof v);
        if (v != want(i, rows))
            fail_msg("row %zu is %f, not %f", i, (double)v, (double)want(i, rows));
    }
}

static float of_actor_and_critic(size_t i, size_t rows)
{
    return (float)i + (i >= rows / 2 ? 1 : 0) - 10;
}

static void a_batch_goes_from_actor_to_critic_without_passing_the_gateway(void **state)
{
    (void)state;
    char *put = put_batch(&actor, ROWS);
    uint64_t before = passed();
    char *acted = keep(&actor, "add", put);
    char *criticized = keep(&critic, "sub", acted);
    assert_true(passed() - before < 16 << 10); // although 8 MiB were made and 4 MiB were transferred
    must(request(&critic, "object.get", criticized));
    assert_rows(ROWS, of_actor_and_critic);
    assert_true(passed() - before > ROWS * sizeof(float));
    free(put);
    free(acted);
    free(criticized);
}

static float of_the_rank_that_got_all(size_t i, size_t rows)
{
    (void)rows;
    return (float)i - 10;
}

static void parts_are_joined_by_whoever_gets_them_all(void **state)
{
    (void)state;
    char *put = put_batch(&actor, 1000);
    cadre_client_request r = request(&critic, "sub", put);
    r.rank = 1;
    must(r);
    assert_rows(1000, of_the_rank_that_got_all);
    free(put);
    cadre_client_request columns = request(&actor, "object.put", "{\"a\": [1, 2, 3, 4]}");
    columns.dispatch = CADRE_CLIENT_DP_COMPUTE_PROTO;
    must(columns);
    put = take_reference();
    r = request(&critic, "sub", put);
    r.rank = 0;
    must(r);
    assert_string_equal(buf_str(&last.result), "{\"a\":[-9,-8,-7,-6]}");
    free(put);
}

static void what_is_freed_is_gone_everywhere(void **state)
{
    (void)state;
    char *put = put_batch(&actor, 4);
    must(request(&actor, "object.free", put));
    assert_string_equal(buf_str(&last.result), "[true,true]");
    must_fail(request(&actor, "object.get", put), CADRE_CLIENT_NOT_FOUND, "no longer");
    must_fail(request(&critic, "sub", put), CADRE_CLIENT_NOT_FOUND, "it was freed");
    free(put);
}

static void a_full_store_says_so_and_has_room_again(void **state)
{
    (void)state;
    char *refs[8] = {NULL};
    size_t n = 0;
    cadre_client_request r = request(&actor, "object.put", NULL);
    void *batch = batch_of(ROWS, 0, &r.batch_len);
    r.batch = batch;
    r.rank = 1;
    while (ask_with(client, &r) == CADRE_CLIENT_OK)
        refs[n++] = take_reference();
    assert_int_equal(n, 4); // 4 MiB each, in 20 MB
    assert_int_equal(last.error.code, CADRE_CLIENT_LIMIT);
    assert_non_null(strstr(last.error.message, "StoreFull: no room for"));
    assert_non_null(strstr(last.error.message, "4 objects have"));
    assert_non_null(strstr(last.error.message, STORE_BYTES));
    must(request(&actor, "object.free", refs[0]));
    must(r);
    while (n)
        free(refs[--n]);
    free(batch);
}

static size_t n_workers(void)
{
    return (size_t)gateway_fixture_counters(&f).workers;
}

static void an_owner_that_died_is_named(void **state)
{
    (void)state;
    char *put = put_batch(&actor, 4);
    end_rank(&actor, 1, SIGKILL);
    GATEWAY_UNTIL(&f, n_workers() == 3); // before that, only the consumer would notice: OwnerUnreachable
    must_fail(request(&critic, "sub", put), CADRE_CLIENT_GONE, "ReferenceLost: rank 1 of ml/actor");
    free(put);
}

static void the_end_of_a_session_frees_what_it_has_not_pinned(void **state)
{
    (void)state;
    cadre_client *first = client, *second = open_client();
    cadre_client_request r = request(&actor, "object.put", "[1,2]");
    GATEWAY_UNTIL(&f, n_workers() == 4);
    client = second;
    must(r);
    char *mine = take_reference();
    r.pin = 1;
    must(r);
    char *pinned = take_reference();
    r.pin = 0;
    must(r);
    char *later = take_reference();
    must(request(&actor, "object.pin", later));
    client = first;
    must(request(&actor, "object.get", mine)); // every client that may call may get it
    assert_string_equal(buf_str(&last.result), "[1,2]");
    cadre_client_close(second);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 1);
    must_fail(request(&actor, "object.get", mine), CADRE_CLIENT_NOT_FOUND, "its session has ended");
    must(request(&actor, "object.get", pinned));
    must(request(&actor, "object.get", later));
    free(mine);
    free(pinned);
    free(later);
}

static void json_stands_in_for_its_reference_anywhere(void **state)
{
    (void)state;
    char args[1024];
    start_group(&echo);
    must(request(&actor, "object.put", "{\"deep\": [1, 2]}"));
    char *ref = take_reference();
    snprintf(args, sizeof args, "[{\"x\": %s}, \"{\\\"$ref\\\": 1}\", %s, {\"$ref\": \"#/other\"}]", ref, ref);
    cadre_client_request r = request(&echo, "echo", args);
    r.rank = 1;
    must(r);
    assert_string_equal(buf_str(&last.result),
                        "[{\"x\": {\"deep\": [1, 2]}}, \"{\\\"$ref\\\": 1}\", {\"deep\": [1, 2]}, "
                        "{\"$ref\": \"#/other\"}]");
    must(request(&echo, "echo", ref)); // both ranks answer
    assert_string_equal(buf_str(&last.result), "[{\"deep\": [1, 2]},{\"deep\": [1, 2]}]");
    free(ref);
    char *batch = put_batch(&actor, 2);
    snprintf(args, sizeof args, "[%s]", batch);
    must_fail(request(&echo, "echo", args), CADRE_CLIENT_INVALID, "2 parts");
    free(batch);
}

static void a_result_that_does_not_fit_fails_after_it_ran(void **state)
{
    (void)state;
    char *put = put_batch(&actor, 2 * ROWS), *acted = keep(&actor, "add", put), *again;
    again = keep(&actor, "add", put); // 3 times 4 MiB per rank
    char *last_one = keep(&actor, "add", put);
    cadre_client_request r = request(&actor, "add", put);
    r.by_reference = 1;
    must_fail(r, CADRE_CLIENT_LIMIT, "add() ran, but its result cannot stay here: StoreFull");
    free(put);
    free(acted);
    free(again);
    free(last_one);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_batch_goes_from_actor_to_critic_without_passing_the_gateway),
        TEST(parts_are_joined_by_whoever_gets_them_all),
        TEST(what_is_freed_is_gone_everywhere),
        TEST(a_full_store_says_so_and_has_room_again),
        TEST(an_owner_that_died_is_named),
        TEST(the_end_of_a_session_frees_what_it_has_not_pinned),
        TEST(json_stands_in_for_its_reference_anywhere),
        TEST(a_result_that_does_not_fit_fails_after_it_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
