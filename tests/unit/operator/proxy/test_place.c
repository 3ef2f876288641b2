// SPDX-License-Identifier: Apache-2.0
// A worker asks for the address of another rank of its group.
#include "common/wire/peer_key.h"
#include "operator/proxy/place_answer.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELLO "{\"methods\":[],\"objectPort\":41234}"

static void asks(struct world *w, uint32_t rank, const char *body)
{
    struct err err = ERR_INIT;
    assert_int_equal(worker_answer(&w->f, &w->workers[rank], 0, RECORD_PLACE, body, &err), 0);
}

#define ASK(rank) "{\"rank\":" #rank ",\"meeting\":\"0000000000000abc\",\"index\":2,\"until\":5}"
#define NOWHERE "{\"meeting\":\"0000000000000abc\"}"

static void hears_place(struct world *w, uint32_t rank, const char *want)
{
    wire_pass(&w->workers[rank].wire);
    struct wire_record *r = wire_next(&w->workers[rank].wire);
    assert_non_null(r);
    assert_int_equal(r->h.type, RECORD_PLACE);
    assert_int_equal(r->h.call, 0);
    assert_string_equal(r->body, want);
    free(r);
}

static void dials(struct world *w, uint32_t rank, uint32_t attempt)
{
    struct err err = ERR_INIT;
    assert_int_equal(worker_dial_as(&w->f, &w->workers[rank], rank, attempt, HELLO, &err), 0);
}

static void a_worker_learns_where_another_one_is(void **state)
{
    struct world *w = *state;
    dials(w, 0, 1);
    dials(w, 2, 1);
    char key[PEER_KEY_SIZE], want[256];
    peer_key("secret", "cadre.dev/meeting/v1/0000000000000abc.2.5", key);
    snprintf(want, sizeof want,
             "{\"meeting\":\"0000000000000abc\",\"at\":\"10.0.0.7:41234\",\"key\":\"%s\",\"until\":5}", key);
    asks(w, 2, ASK(0));
    hears_place(w, 2, want);
    asks(w, 2,
         "{\"group\":\"llama\","
         "\"rank\":0,\"meeting\":\"0000000000000abc\",\"index\":2,\"until\":5}");
    hears_place(w, 2, want);
    asks(w, 2,
         "{\"group\":\"other\","
         "\"rank\":0,\"meeting\":\"0000000000000abc\",\"index\":2,\"until\":5}");
    hears_place(w, 2, NOWHERE);
}

static void one_that_is_not_there_has_no_place(void **state)
{
    struct world *w = *state;
    dials(w, 0, 1);
    asks(w, 0, ASK(1));
    hears_place(w, 0, NOWHERE);
    asks(w, 0, ASK(99));
    hears_place(w, 0, NOWHERE);
    asks(w, 0, ASK(-1));
    hears_place(w, 0, NOWHERE);
}

static void neither_has_one_of_another_attempt(void **state)
{
    struct world *w = *state;
    dials(w, 0, 1);
    fixture_group(&w->f, WORLD, 2, NULL);
    dials(w, 1, 2);
    asks(w, 1, ASK(0));
    hears_place(w, 1, NOWHERE);
}

static void nonsense_breaks_the_protocol(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    dials(w, 0, 1);
    assert_int_equal(worker_answer(&w->f, &w->workers[0], 0, RECORD_PLACE, "{}", &err), ERR_PROTO);
    assert_non_null(strstr(err.msg, "PLACE: rank 0 must say"));
    assert_true(worker_answer(&w->f, &w->workers[0], 0, RECORD_PLACE, "{", &err) < 0);
    _cleanup_(free_p) char *text = xasprintf("%s%5000s", ASK(0), "");
    assert_int_equal(worker_answer(&w->f, &w->workers[0], 0, RECORD_PLACE, text, &err), ERR_PROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST_EMPTY(a_worker_learns_where_another_one_is),
        PROXY_TEST_EMPTY(one_that_is_not_there_has_no_place),
        PROXY_TEST_EMPTY(neither_has_one_of_another_attempt),
        PROXY_TEST_EMPTY(nonsense_breaks_the_protocol),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
