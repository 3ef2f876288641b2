// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/group_request.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST(no_result_of_it_stays_on_the_workers),
        PROXY_TEST(an_option_that_only_calls_have_is_refused),
        PROXY_TEST(its_arguments_may_come_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
