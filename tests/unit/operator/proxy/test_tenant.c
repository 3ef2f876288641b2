// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/tenant.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAYS "{\"method\":\"add\",\"timeoutMs\":518400000}"

static void other_group(struct world *w)
{
    const struct group_facts facts = {
        .uid = "uid-2", .ns = "web", .name = "llama", .world = 1, .attempt = 1, .oldest = 1};
    router_group_set(&w->f.router, &facts);
}

// Sends calls that wait, until the client gets an error. Returns the error.
static const char *fills(struct client *c, const char *args, uint32_t calls)
{
    struct err err = ERR_INIT;
    const char *got = NULL;
    for (uint32_t id = 1; id <= calls && !got; id++) {
        struct call_text call = {.id = id, .rank = RECORD_GROUP, .head = DAYS, .args = args};
        assert_int_equal(client_send(c, &call, &err), 0);
        got = client_hears(c);
    }
    return got;
}

static size_t fill(struct client *c)
{
    size_t n = quota_left(c->session->quota);
    assert_true(quota_charge(c->session->quota, n));
    return n;
}

static void a_namespace_holds_no_more_bytes_than_are_left_to_others(void **state)
{
    struct world *w = *state;
    struct client more[3], other;
    struct err err = ERR_INIT;
    struct call_text call = {.id = 1, .rank = RECORD_GROUP, .head = DAYS, .args = "[]"};
    size_t held[3];
    other_group(w);
    for (int i = 0; i < 3; i++) {
        client_open(&w->f, &more[i], "llama");
        held[i] = fill(&more[i]);
    }
    assert_int_equal(quota_used(w->f.router.bytes), fixture_limits.total_bytes / 2);
    sends_group(w, 1, ADD, "[]");
    hears(w, "1 ERROR THROTTLED the calls and answers of namespace ml take 33554432 bytes here, and may take no "
             "more; *");
    client_open_in(&w->f, &other, "web", "llama"); // it has room all the same
    assert_int_equal(client_send(&other, &call, &err), 0);
    assert_null(client_hears(&other));
    for (int i = 0; i < 3; i++) {
        quota_refund(more[i].session->quota, held[i]);
        client_close(&more[i]);
    }
    client_close(&other);
    assert_int_equal(quota_used(w->f.router.bytes), 0);
}

static void who_reads_no_answers_is_not_read_once_they_fill_the_share(void **state)
{
    struct world *w = *state;
    struct client mute, other;
    struct err err = ERR_INIT;
    struct call_text call = {.rank = RECORD_GROUP, .head = "{\"method\":\"add\",\"group\":\"none\"}", .args = "[]"};
    client_open(&w->f, &mute, "llama");
    client_open_in(&w->f, &other, "web", "llama");
    size_t left = quota_left(mute.session->quota) - 10000;
    assert_true(quota_charge(mute.session->quota, left)); // for example by results that wait for other ranks
    mute.session->parked = left;
    uint32_t asked = 0;
    for (; mute.session->peer.read && asked < 1000; asked++) {
        call.id = asked + 1;
        assert_int_equal(client_send(&mute, &call, &err), 0);
    }
    assert_in_range(asked, 10, 100);
    assert_true(quota_left(mute.session->quota) < 1000);
    assert_true(other.session->peer.read);
    quota_refund(mute.session->quota, left);
    mute.session->parked = 0;
    router_turn(&w->f.router);
    assert_false(mute.session->peer.read); // the result without room still waits
    for (uint32_t id = 1; id <= asked; id++)
        assert_non_null(strstr(client_hears(&mute), "NOT_FOUND"));
    router_turn(&w->f.router);
    assert_true(mute.session->peer.read);
    client_close(&mute);
    client_close(&other);
}

static void a_namespace_has_no_more_calls_than_are_left_to_others(void **state)
{
    struct world *w = *state;
    struct client more[8], other;
    const char *got = NULL;
    uint32_t share = fixture_limits.total_calls / 2;
    other_group(w);
    for (int i = 0; i < 8; i++) {
        client_open(&w->f, &more[i], "llama");
        if (!got)
            got = fills(&more[i], "[]", fixture_limits.session_calls);
    }
    assert_string_equal(got,
                        "1 ERROR THROTTLED the clients of namespace ml have 600 calls in progress here, which is its "
                        "part of the 600 that are free; wait for some of them, or give it a higher weight "
                        "(--namespace-weights)");
    assert_int_equal(w->f.router.n_calls, share);
    client_open_in(&w->f, &other, "web", "llama");
    assert_null(fills(&other, "[]", fixture_limits.session_calls));
    client_close(&other);
    sends_group(w, 1, ADD, "[]"); // the memory of the other client is free again
    hears(w, "1 ERROR THROTTLED*");
    client_close(&more[0]);
    sends_group(w, 1, ADD, "[]");
    hears_nothing(w);
    for (int i = 1; i < 8; i++)
        client_close(&more[i]);
}

// Sends a call with a head of this length.
static void sends_head(struct world *w, uint32_t id, size_t len)
{
    struct err err = ERR_INIT;
    _cleanup_(free_p) char *head = xasprintf("{\"method\":\"add\"%*s}", (int)(len - strlen(ADD)), "");
    struct call_pieces b = call_pieces(id, head, "[]", 2);
    assert_int_equal(call_pieces_send(&w->c, &b, b.len, &err), 0);
}

static void a_long_head_counts_as_several_requests(void **state)
{
    struct world *w = *state;
    const struct tenant *t = w->c.session->tenant;
    sends_head(w, 1, 100 * TENANT_UNIT_BYTES);
    assert_int_equal(t->spent, 101);
    hears_nothing(w);
    sends_head(w, 2, CALL_HEAD_MAX + 1);
    hears(w, "2 ERROR LIMIT the head of the call has 2097153 bytes; at most 2097152");
    assert_int_equal(t->spent, 102);
    sends_head(w, 3, CALL_HEAD_MAX);
    hears_nothing(w);
}

static void no_call_waits_longer_than_the_longest_wait(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, DAYS, "[]");
    fixture_pass(&w->f, fixture_limits.task_wait_ms - 1);
    hears_nothing(w);
    fixture_pass(&w->f, 1);
    hears(w, "1 ERROR TIMEOUT add() of ml/llama: not done within 3600000 ms: *");
}

static void a_call_that_runs_has_all_the_time_that_it_was_given(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, DAYS, "[]"); // it waits a while, and then runs
    fixture_pass(&w->f, 1000);
    for (uint32_t i = 0; i < WORLD; i++)
        worker_start(&w->f, &w->workers[i], i, 1);
    assert_true(worker_takes(&w->workers[0], "[]"));
    fixture_pass(&w->f, 2 * fixture_limits.task_wait_ms);
    hears_nothing(w);
    fixture_pass(&w->f, 518400000);
    hears(w, "1 ERROR TIMEOUT add() of ml/llama: not done within 518400000 ms: no answer from ranks*");
}

static void a_fair_quota_leaves_as_much_as_it_takes(void **state)
{
    struct quota *all = quota_new(90, NULL), *one = quota_new_fair(all, 1), *two = quota_new_fair(all, 1);
    (void)state;
    assert_true(quota_charge(one, 45));
    assert_false(quota_charge(one, 1));
    assert_int_equal(quota_left(two), 22);
    assert_true(quota_charge(two, 22));
    assert_false(quota_charge(two, 1));
    quota_refund(one, 45); // refunded: a namespace that is alone may have half again
    assert_true(quota_charge(two, 23));
    assert_false(quota_charge(two, 1));
    quota_refund(two, 45);
    quota_unref(one);
    quota_unref(two);
    quota_unref(all);
}

static void a_weight_is_so_many_times_what_is_left(void **state)
{
    (void)state;
    struct quota *all = quota_new(90, NULL), *heavy = quota_new_fair(all, 2), *light = quota_new_fair(all, 1);
    assert_int_equal(quota_left(heavy), 60);
    assert_true(quota_charge(heavy, 60));
    assert_false(quota_charge(heavy, 1));
    assert_int_equal(quota_left(light), 15);
    assert_true(quota_charge(light, 15));
    quota_refund(heavy, 60);
    quota_refund(light, 15);
    quota_unref(heavy);
    quota_unref(light);
    quota_unref(all);
}

static void a_namespace_has_no_more_connections_than_are_left_to_others(void **state)
{
    (void)state;
    struct proxy_fixture f;
    struct router_config limits = fixture_limits;
    struct client c[12];
    struct err err = ERR_INIT;
    limits.total_sessions = 12;
    limits.weights = "heavy=3";
    fixture_init(&f, &limits);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(tenant_check_sessions(&f.router, "ml", &err), 0);
        client_open_in(&f, &c[i], "ml", NULL);
    }
    assert_int_equal(tenant_check_sessions(&f.router, "ml", &err), ERR_THROTTLED);
    assert_string_equal(err.msg, "the clients of namespace ml have 6 connections here, which is its part of the 6 that "
                                 "are free; close some of them, or give it a higher weight (--namespace-weights)");
    err = ERR_INIT;
    for (int i = 6; i < 11; i++) { // until they have three times what is left
        assert_int_equal(tenant_check_sessions(&f.router, "heavy", &err), 0);
        client_open_in(&f, &c[i], "heavy", NULL);
    }
    assert_int_equal(tenant_check_sessions(&f.router, "heavy", &err), ERR_THROTTLED);
    err = ERR_INIT;
    assert_int_equal(tenant_check_sessions(&f.router, "web", &err), 0); // there is always room for one more
    for (int i = 0; i < 11; i++)
        client_close(&c[i]);
    assert_int_equal(f.router.n_sessions, 0);
    fixture_done(&f);
}

// Busy namespaces do work in random pieces, as much as they may. They share nearly all of the work of the turns by
// weight, except for the last piece and one turn.
static void work_is_done_in_turns_by_weight(void **state)
{
    (void)state;
    enum { TURNS = 20000, PIECE_MAX = 10 * TENANT_TURN };
    static const char *const names[] = {"one", "heavy", "small"};
    struct proxy_fixture f;
    struct router_config limits = fixture_limits;
    struct tenant *t[3];
    uint64_t done[3] = {0}, turns_of_small = 0;
    struct rand r;
    rand_seed(&r, 7);
    limits.weights = "heavy=3";
    fixture_init(&f, &limits);
    for (int i = 0; i < 3; i++)
        t[i] = tenant_get(&f.router, names[i]);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < 2; i++)
            while (tenant_has_turn(t[i])) {
                uint64_t piece = 1 + rand_below(&r, PIECE_MAX);
                tenant_spend(t[i], piece);
                done[i] += piece;
            }
        turns_of_small += tenant_has_turn(t[2]); // a namespace with little work never waits
        tenant_spend(t[2], 1);
        tenants_next_turn(&f.router);
    }
    assert_int_equal(turns_of_small, TURNS);
    uint64_t all = (uint64_t)TURNS * TENANT_TURN, ratio = t[1]->weight / t[0]->weight;
    assert_in_range(done[0] + done[1], all / 100 * 96, all + 2 * PIECE_MAX);
    // The first turn is not shared yet.
    assert_in_range(done[1], ratio * (done[0] - PIECE_MAX - TENANT_TURN), ratio * done[0] + PIECE_MAX + TENANT_TURN);
    for (int i = 0; i < 3; i++)
        tenant_unref(t[i]);
    fixture_done(&f);
}

static void tenants_come(struct proxy_fixture *f, struct tenant **t, int n)
{
    char name[16];
    fixture_init(f, &fixture_limits);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "ns-%d", i);
        t[i] = tenant_get(&f->router, name);
    }
}

static void tenants_go(struct proxy_fixture *f, struct tenant **t, int n)
{
    for (int i = 0; i < n; i++)
        tenant_unref(t[i]);
    while (!list_empty(&f->router.charged))
        (void)tenants_next_turn(&f->router);
    fixture_done(f);
}

// Does work in short records, as long as it may. Returns how many there were.
static unsigned works(struct tenant *t)
{
    unsigned n = 0;
    for (; tenant_has_turn(t); n++)
        tenant_spend(t, 1);
    return n;
}

static void the_work_of_a_turn_does_not_grow_with_the_namespaces(void **state)
{
    (void)state;
    enum { N = 100, TURNS = 50 };
    struct proxy_fixture f;
    struct tenant *t[N];
    tenants_come(&f, t, N);
    for (int turn = 0; turn < TURNS; turn++) {
        unsigned all = 0, least = UINT32_MAX;
        for (int i = 0; i < N; i++) {
            unsigned n = works(t[i]);
            all += n;
            if (turn == 0 || i >= 2) // these two have done all work of the first turn, and owe some
                least = MIN(least, n);
        }
        assert_in_range(all, TENANT_TURN - N, turn ? TENANT_TURN : TENANT_TURN_MAX + N);
        assert_in_range(least, turn ? TENANT_TURN / N : 1, TENANT_TURN);
        (void)tenants_next_turn(&f.router);
    }
    tenants_go(&f, t, N);
}

static void what_the_others_leave_of_a_turn_is_used(void **state)
{
    (void)state;
    enum { N = 50, LITTLE = 3, TURNS = 50 };
    struct proxy_fixture f;
    struct tenant *t[N];
    tenants_come(&f, t, N);
    for (int turn = 0; turn < TURNS; turn++) {
        unsigned n = works(t[0]);
        int others = (N - 1) * LITTLE, owed = turn == 1 ? others : 0; // the first turn was not shared yet
        assert_in_range(n, TENANT_TURN - others - owed, TENANT_TURN);
        for (int i = 1; i < N; i++)
            for (int k = 0; k < LITTLE; k++) {
                assert_true(tenant_has_turn(t[i]));
                tenant_spend(t[i], 1);
            }
        (void)tenants_next_turn(&f.router);
    }
    tenants_go(&f, t, N);
}

static void a_slice_is_short_once_much_was_done_in_a_turn(void **state)
{
    (void)state;
    enum { N = 20, SLICE = TENANT_TURN * TENANT_UNIT_BYTES };
    struct proxy_fixture f;
    struct tenant *t[N];
    size_t all = 0;
    tenants_come(&f, t, N);
    assert_int_equal(tenant_slice(t[0]), SLICE);
    for (int i = 0; i < N; i++) {
        size_t n = tenant_slice(t[i]);
        assert_true(n > 0);
        tenant_spend(t[i], n / TENANT_UNIT_BYTES);
        all += n;
    }
    assert_in_range(all, 2 * SLICE, 2 * SLICE + N * SLICE / 8);
    tenants_go(&f, t, N);
}

// The rule says what each namespace may still do: a turn gives each one its part, nothing is saved up, and what a
// namespace owes has a limit. Work may begin while anything is left.
enum { ORACLES = 6 };

struct oracle {
    int64_t weight[ORACLES], spent[ORACLES]; // including what was not paid of earlier turns
    int64_t level, worked;
};

static int64_t oracle_part(const struct oracle *o, int i)
{
    int64_t part = o->level * o->weight[i];
    return part > TENANT_TURN ? TENANT_TURN : part;
}

static bool oracle_has_turn(const struct oracle *o, int i)
{
    return oracle_part(o, i) - o->spent[i] > 0 && (o->worked < TENANT_TURN_MAX || o->spent[i] == 0);
}

static void oracle_spends(struct oracle *o, int i, int64_t n)
{
    int64_t most = (int64_t)TENANT_OWES * TENANT_TURN;
    o->spent[i] = o->spent[i] + n > most ? most : o->spent[i] + n;
    o->worked += n;
}

// Whether the work of the last turn would have fit into one turn, if each namespace with more work had got this much.
static bool oracle_fits(const struct oracle *o, int64_t level)
{
    int64_t all = 0;
    for (int i = 0; i < ORACLES; i++)
        all += o->spent[i] && !oracle_has_turn(o, i) ? level * o->weight[i] : o->spent[i];
    return all <= TENANT_TURN;
}

// Whether it is so little that all namespaces that have worked could have it.
static bool oracle_is_for_all(const struct oracle *o, int64_t level)
{
    int64_t all = 0;
    for (int i = 0; i < ORACLES; i++)
        all += o->spent[i] ? level * o->weight[i] : 0;
    return all <= TENANT_TURN;
}

static void oracle_turns(struct oracle *o)
{
    int64_t level = TENANT_TURN;
    while (level > 1 && !oracle_fits(o, level) && !oracle_is_for_all(o, level))
        level--;
    o->level = level;
    o->worked = 0;
    for (int i = 0; i < ORACLES; i++)
        o->spent[i] = o->spent[i] > oracle_part(o, i) ? o->spent[i] - oracle_part(o, i) : 0;
}

static void turns_are_given_as_the_slow_oracle_gives_them(void **state)
{
    (void)state;
    enum { STEPS = 200000 };
    static const char *const names[ORACLES] = {"a", "b", "c", "d", "e", "f"};
    struct proxy_fixture f;
    struct router_config limits = fixture_limits;
    struct tenant *t[ORACLES];
    struct oracle o = {.level = TENANT_TURN};
    struct rand r;
    rand_seed(&r, 19);
    limits.weights = "b=4,c=7,d=10,e=13,f=16";
    fixture_init(&f, &limits);
    for (int i = 0; i < ORACLES; i++) {
        t[i] = tenant_get(&f.router, names[i]);
        o.weight[i] = t[i]->weight;
    }
    for (int step = 0; step < STEPS; step++) {
        int i = (int)rand_below(&r, ORACLES + 1);
        if (i == ORACLES) {
            bool owes = false;
            oracle_turns(&o);
            for (int k = 0; k < ORACLES; k++)
                owes = owes || !oracle_has_turn(&o, k);
            assert_int_equal(tenants_next_turn(&f.router), owes);
            continue;
        }
        int64_t n = (int64_t)rand_below(&r, (uint64_t)1 << rand_below(&r, 24)); // short and long ones
        tenant_spend(t[i], (size_t)n);
        oracle_spends(&o, i, n);
        for (int k = 0; k < ORACLES; k++)
            if (tenant_has_turn(t[k]) != oracle_has_turn(&o, k) ||
                tenant_may_go_on(&f.router, names[k]) != oracle_has_turn(&o, k))
                fail_msg("step %d: %s has spent %lld of %lld", step, names[k], (long long)o.spent[k],
                         (long long)oracle_part(&o, k));
    }
    for (int i = 0; i < ORACLES; i++)
        tenant_unref(t[i]);
    while (!list_empty(&f.router.charged)) // a namespace that owes exists until it has paid
        (void)tenants_next_turn(&f.router);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST_EMPTY(a_namespace_holds_no_more_bytes_than_are_left_to_others),
        PROXY_TEST_EMPTY(who_reads_no_answers_is_not_read_once_they_fill_the_share),
        PROXY_TEST_EMPTY(a_namespace_has_no_more_calls_than_are_left_to_others),
        PROXY_TEST_EMPTY(a_long_head_counts_as_several_requests),
        PROXY_TEST_EMPTY(no_call_waits_longer_than_the_longest_wait),
        PROXY_TEST_EMPTY(a_call_that_runs_has_all_the_time_that_it_was_given),
        cmocka_unit_test(a_fair_quota_leaves_as_much_as_it_takes),
        cmocka_unit_test(a_weight_is_so_many_times_what_is_left),
        cmocka_unit_test(a_namespace_has_no_more_connections_than_are_left_to_others),
        cmocka_unit_test(work_is_done_in_turns_by_weight),
        cmocka_unit_test(the_work_of_a_turn_does_not_grow_with_the_namespaces),
        cmocka_unit_test(what_the_others_leave_of_a_turn_is_used),
        cmocka_unit_test(a_slice_is_short_once_much_was_done_in_a_turn),
        cmocka_unit_test(turns_are_given_as_the_slow_oracle_gives_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
