// SPDX-License-Identifier: Apache-2.0
// Functions of the client library that need no proxy.
#include "sdk/c/client/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define J(literal) ((cadre_client_json){(literal), sizeof(literal) - 1})

static cadre_client_options options_of(void)
{
    cadre_client_options o;
    cadre_client_options_init(&o);
    o.address = "unix:/nonexistent/proxy.sock";
    o.ns = "ml";
    return o;
}

static void options_that_make_no_sense_are_refused(void **state)
{
    const cadre_client_options options = options_of();
    cadre_client *client;
    cadre_client_error error;
    (void)state;
    struct {
        cadre_client_options o;
        cadre_client_code code;
        const char *says;
    } cases[10];
    for (size_t i = 0; i < 10; i++) {
        cases[i].o = options;
        cases[i].code = CADRE_CLIENT_INVALID;
    }
    cases[0].o.address = NULL, cases[0].says = "no address";
    cases[1].o.address = "proxy:9443", cases[1].says = "\"proxy:9443\" is not an address";
    cases[2].o.address = "wss://proxy:9443/path", cases[2].says = "\"wss://proxy:9443/path\" is not an address";
    cases[3].o.ns = NULL, cases[3].says = "no namespace";
    cases[4].o.ns = "../x", cases[4].says = "namespace \"../x\" is not a name of Kubernetes";
    cases[5].o.token = "a", cases[5].o.token_file = "b", cases[5].says = "set only one of token and token_file";
    cases[6].o.address = "wss://proxy:9443", cases[6].o.ca_file = "/nonexistent/ca", cases[6].code = CADRE_CLIENT_IO;
    cases[6].says = "the CA file: cannot read /nonexistent/ca: No such file";
    cases[7].o.address = "wss://proxy:9443", cases[7].o.ca_pem = "no PEM";
    cases[7].says = "the CA to trust is not a list of PEM certificates";
    cases[9].o.token_file = "/nonexistent/token", cases[9].code = CADRE_CLIENT_IO;
    cases[9].says = "the token file: cannot read /nonexistent/token: No such file";
    cases[8].o.size = 0, cases[8].says = "cadre_client_options was not initialised";
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(cadre_client_open(&cases[i].o, &client, &error), cases[i].code);
        assert_ptr_equal(strstr(error.message, cases[i].says), error.message);
    }
}

static void it_looks_before_it_sleeps_unless_told_otherwise(void **state)
{
    cadre_client_options options = options_of();
    (void)state;
    for (int no_spin = 0; no_spin < 2; no_spin++) {
        struct settings s;
        struct err err = ERR_INIT;
        options.no_spin = no_spin;
        assert_int_equal(settings_init(&s, &options, &err), 0);
        assert_int_equal(s.sleeps, no_spin);
        settings_done(&s);
    }
}

// A program that was built with another version of the header.
static void options_may_be_longer_or_shorter(void **state)
{
    struct {
        cadre_client_options o;
        char novelty[8];
    } newer = {.o = options_of()};
    cadre_client *client;
    cadre_client_error error;
    (void)state;
    newer.o.size = sizeof newer;
    assert_int_equal(cadre_client_open(&newer.o, &client, &error), CADRE_CLIENT_OK);
    cadre_client_close(client);
    newer.novelty[3] = 1;
    assert_int_equal(cadre_client_open(&newer.o, &client, &error), CADRE_CLIENT_INVALID);
    assert_non_null(strstr(error.message, "uses options that this version of the library"));
    newer.o.size = offsetof(cadre_client_options, token);
    newer.o.token = (const char *)1; // behind the end
    assert_int_equal(cadre_client_open(&newer.o, &client, &error), CADRE_CLIENT_OK);
    cadre_client_close(client);
}

static void results_of_ranks_are_walked_over(void **state)
{
    (void)state;
    static const char text[] = " [ 1 , [2,3], {\"a\": \"]},[\\\"\"} ,\"x\" ] ";
    static const char *const want[] = {"1", "[2,3]", "{\"a\": \"]},[\\\"\"}", "\"x\""};
    cadre_client_json list = {text, sizeof text - 1}, item;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(cadre_client_list_next(&list, &item), 1);
        assert_int_equal(item.len, strlen(want[i]));
        assert_memory_equal(item.text, want[i], item.len);
    }
    assert_int_equal(cadre_client_list_next(&list, &item), 0);
    assert_int_equal(cadre_client_list_next(&list, &item), 0);
    static const char *const wrong[] = {"", "1", "{}", "[1", "[1,", "[1 2", "[}", "[]x", "[,1]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        list = (cadre_client_json){wrong[i], strlen(wrong[i])};
        int got;
        while ((got = cadre_client_list_next(&list, &item)) == 1)
            ;
        assert_int_equal(got, -1);
    }
    list = J("[]");
    assert_int_equal(cadre_client_list_next(&list, &item), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(options_may_be_longer_or_shorter),
        cmocka_unit_test(it_looks_before_it_sleeps_unless_told_otherwise),
        cmocka_unit_test(results_of_ranks_are_walked_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
