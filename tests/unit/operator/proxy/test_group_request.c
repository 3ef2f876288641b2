// SPDX-License-Identifier: Apache-2.0
#include "common/base/mem.h"
#include "operator/proxy/group_change.h"
#include "operator/proxy/group_request.h"
#include "operator/proxy/tenant.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void no_result_of_it_stays_on_the_workers(void **state)
{
    static const char *const methods[] = {"info", "stats", "output", "kill", "create", "bundles"};
    static const char *const members[] = {"\"keep\":true", "\"pin\":true", "\"keep\":true,\"pin\":true"};
    struct world *w = *state;
    uint32_t id = 0;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
            char head[128], want[32];
            snprintf(head, sizeof head, "{\"method\":\"group.%s\",%s}", methods[i], members[k]);
            snprintf(want, sizeof want, "%u ERROR INVALID group.%s ", ++id, methods[i]);
            sends(w, (struct call_text){.id = id, .rank = 1, .head = head});
            hears_about(w, want, "leave out \"keep\" and \"pin\"");
        }
}

static void an_option_that_only_calls_have_is_refused(void **state)
{
    static const char *const methods[] = {"info", "stats", "output", "create", "bundles"};
    static const struct {
        const char *name, *member;
        struct call_text call;
    } options[] = {
        {"rank", "", {.rank = 1}},
        {"dispatch", "", {.rank = RECORD_GROUP, .dispatch = RECORD_ONE_TO_ALL}},
        {"execute", "", {.rank = RECORD_GROUP, .execute = RECORD_ALL}},
        {"split", ",\"split\":{}", {.rank = RECORD_GROUP}},
        {"collect", ",\"collect\":{}", {.rank = RECORD_GROUP}},
        {"pad", ",\"pad\":true", {.rank = RECORD_GROUP}},
        {"role", ",\"role\":\"actor\"", {.rank = RECORD_GROUP}},
        {"attempt", ",\"attempt\":1", {.rank = RECORD_GROUP}},
    };
    struct world *w = *state;
    uint32_t id = 0;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
            struct call_text call = options[k].call;
            char head[128], begin[32], about[32];
            snprintf(head, sizeof head, "{\"method\":\"group.%s\"%s}", methods[i], options[k].member);
            snprintf(begin, sizeof begin, "%u ERROR INVALID group.%s ", ++id, methods[i]);
            snprintf(about, sizeof about, "leave out \"%s\"", options[k].name);
            call.id = id;
            call.head = head;
            sends(w, call);
            hears_about(w, begin, about);
        }
}

static void its_arguments_may_come_in_pieces(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    struct call_pieces b = call_pieces(1, "{\"method\":\"group.info\"}", "[3]", 3);
    b.dispatch = b.execute = 0;
    assert_int_equal(call_pieces_send(&w->c, &b, b.len - 2, &err), ROUTER_COLLECT);
    hears_nothing(w);
    b.at = 0; // the reader collects the pieces
    assert_int_equal(call_pieces_send(&w->c, &b, b.len, &err), 0);
    hears_about(w, "1 RESULT ", "\"workers\":[{\"rank\":3,");
}

static void its_arguments_are_short(void **state)
{
    static const char *const methods[] = {"info", "output", "stats", "kill"};
    struct world *w = *state;
    _cleanup_(free_p) char *args = xasprintf("[0%5000s]", "");
    for (uint32_t i = 0; i < ARRAY_LEN(methods); i++) {
        char head[64], begin[64];
        snprintf(head, sizeof head, "{\"method\":\"group.%s\"}", methods[i]);
        snprintf(begin, sizeof begin, "%u ERROR LIMIT the arguments of group.%s have 5003 bytes", i + 1, methods[i]);
        sends_group(w, i + 1, head, args);
        hears_about(w, begin, "at most 4096");
    }
}

// Requests that need the API server

#define CREATE "{\"method\":\"group.create\"}"
#define RENEW "{\"method\":\"group.renew\"}"
#define MANIFEST ((size_t)400 << 10)

static void creates(struct world *w, uint32_t id)
{
    char *manifest = xmalloc(MANIFEST + 1);
    memset(manifest, ' ', MANIFEST);
    manifest[MANIFEST] = '\0';
    sends_group(w, id, CREATE, manifest);
    free(manifest);
}

// The operator keeps a manifest twice.
static void the_client_pays_for_a_manifest_until_it_is_answered(void **state)
{
    struct world *w = *state;
    creates(w, 1);
    creates(w, 2);
    assert_in_range(quota_used(w->c.session->quota), 4 * MANIFEST, 4 * MANIFEST + 1000);
    group_change_answer(router_group_change(&w->f.router), "null", 4);
    hears(w, "1 RESULT null");
    assert_in_range(quota_used(w->c.session->quota), 2 * MANIFEST, 2 * MANIFEST + 1000);
    struct group_change *begun = router_group_change(&w->f.router);
    client_close(&w->c);
    assert_in_range(quota_used(w->f.router.bytes), 2 * MANIFEST, 2 * MANIFEST + 1000);
    group_change_answer(begun, "null", 4);
    assert_int_equal(quota_used(w->f.router.bytes), 0);
}

static void a_manifest_without_room_is_refused(void **state)
{
    struct world *w = *state;
    struct quota *quota = w->c.session->quota;
    size_t left = quota_left(quota);
    assert_true(quota_charge(quota, left));
    sends_group(w, 1, CREATE, "{}");
    quota_refund(quota, left);
    hears_about(w, "1 ERROR THROTTLED", "no room for more until some of them are answered");
    assert_null(router_group_change(&w->f.router));
}

static void a_client_that_creates_much_is_not_read_for_a_while(void **state)
{
    struct world *w = *state;
    uint32_t n = 0;
    while (w->c.session->peer.read && n < GROUP_CHANGES_MAX)
        creates(w, ++n);
    assert_in_range(n, 2, w->f.router.config.high_mark / MANIFEST);
    for (struct group_change *e; (e = router_group_change(&w->f.router));)
        group_change_answer(e, "null", 4);
    router_turn(&w->f.router);
    assert_true(w->c.session->peer.read);
}

static void calls_hold_back_no_renewal(void **state)
{
    struct world *w = *state;
    uint32_t calls = fixture_limits.session_calls, id = calls;
    for (uint32_t i = 1; i <= calls; i++)
        sends(w, (struct call_text){.id = i, .rank = 0, .head = ADD});
    sends_group(w, ++id, CREATE, "{}");
    hears_about(w, "101 ERROR THROTTLED", "100 calls of this connection have no answer yet");
    for (size_t i = 0; i < GROUP_CHANGES_MAX; i++)
        sends_group(w, ++id, RENEW, "{}");
    hears_nothing(w);
    sends_group(w, ++id, RENEW, "{}");
    hears_about(w, "166 ERROR THROTTLED", "this connection has 64 requests about groups without an answer");
    group_change_answer(router_group_change(&w->f.router), "null", 4);
    hears(w, "102 RESULT null");
}

// A thousand calls to many ranks take more than what may wait, even without their arguments.
static void open_calls_do_not_stop_reading(void **state)
{
    struct world *w = *state;
    const struct session *s = w->c.session;
    uint32_t calls = fixture_limits.session_calls;
    size_t mark = w->f.router.config.high_mark = w->f.router.config.low_mark = w->f.router.config.pause_mark = 64 << 10;
    for (uint32_t id = 1; id <= calls; id++)
        sends_group(w, id, ADD, "[1]");
    ranks_read(w);
    assert_true(quota_used(s->quota) > 2 * mark);
    assert_true(s->peer.read);
    for (uint32_t id = 1; id <= calls; id++)
        client_cancel(&w->c, id);
    assert_true(quota_used(s->quota) > 2 * mark); // the ranks have not answered
    assert_true(s->peer.read);
}

static void a_namespace_without_room_still_renews(void **state)
{
    struct world *w = *state;
    struct quota *share = w->c.session->tenant->quota;
    size_t taken = quota_left(share), all = quota_used(w->f.router.bytes);
    assert_true(quota_charge(share, taken));
    sends_group(w, 1, RENEW, "{}");
    hears_nothing(w);
    struct group_change *e = router_group_change(&w->f.router);
    assert_non_null(e);
    assert_true(quota_used(w->f.router.bytes) > all + taken); // it counts
    client_close(&w->c);
    quota_refund(share, taken);
    group_change_answer(e, "null", 4);
}

static void the_arguments_of_a_renewal_are_short(void **state)
{
    struct world *w = *state;
    char args[4098] = "{";
    memset(args + 1, ' ', sizeof args - 3);
    args[sizeof args - 2] = '}';
    sends_group(w, 1, RENEW, args);
    hears_about(w, "1 ERROR LIMIT", "the arguments of group.renew have 4097 bytes; at most 4096");
    sends_group(w, 2, RENEW, args + 1);
    hears_nothing(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST(no_result_of_it_stays_on_the_workers),
        PROXY_TEST(an_option_that_only_calls_have_is_refused),
        PROXY_TEST(its_arguments_may_come_in_pieces),
        PROXY_TEST(its_arguments_are_short),
        PROXY_TEST(the_client_pays_for_a_manifest_until_it_is_answered),
        PROXY_TEST(a_manifest_without_room_is_refused),
        PROXY_TEST(a_client_that_creates_much_is_not_read_for_a_while),
        PROXY_TEST(calls_hold_back_no_renewal),
        PROXY_TEST(open_calls_do_not_stop_reading),
        PROXY_TEST(a_namespace_without_room_still_renews),
        PROXY_TEST(the_arguments_of_a_renewal_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
