// SPDX-License-Identifier: Apache-2.0
#include "operator/wiring/operator_options.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <getopt.h>
#include <string.h>

static int parse(struct operator_options *ret, const char *option, const char *value)
{
    char *argv[] = {(char[]){"cadre-operator"}, (char *)option, (char *)value, NULL};
    optind = 1;
    return operator_options_parse(3, argv, ret);
}

static void an_address_to_advertise_has_a_host_and_a_port(void **state)
{
    (void)state;
    static const char *const good[] = {"wss://cadre-operator.cadre-system.svc:9443", "wss://10.0.0.1:1",
                                       "wss://[::1]:9443"};
    struct operator_options o;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(parse(&o, "--advertise", good[i]), -1);
        assert_string_equal(o.advertise_url, good[i]);
    }
}

static void another_address_is_refused_at_once(void **state)
{
    (void)state;
    static const char *const wrong[] = {"wss://::1:9443",   "wss://[::1]", "wss://host",
                                        "wss://host:0",     "host:9443",   "ws://host:9443",
                                        "wss://host:9443/", "wss://:9443", ""};
    struct operator_options o;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_int_equal(parse(&o, "--advertise", wrong[i]), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_to_advertise_has_a_host_and_a_port),
        cmocka_unit_test(another_address_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
