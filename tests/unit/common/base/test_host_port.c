// SPDX-License-Identifier: Apache-2.0
#include "common/base/host_port.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

static void check(const char *address, const char *want_host, const char *want_port)
{
    char *host = NULL;
    const char *port = NULL;
    if (!host_port_split(address, &host, &port))
        fail_msg("%s", address);
    assert_string_equal(host, want_host);
    assert_string_equal(port, want_port);
    free(host);
}

static void it_has_a_host_and_a_port(void **state)
{
    (void)state;
    check("localhost:1", "localhost", "1");
    check("10.0.0.1:65535", "10.0.0.1", "65535");
    check("cadre-operator.cadre-system.svc:9443", "cadre-operator.cadre-system.svc", "9443");
}

static void the_brackets_of_an_ipv6_address_are_not_part_of_it(void **state)
{
    (void)state;
    check("[::1]:80", "::1", "80");
    check("[fe80::1%eth0]:80", "fe80::1%eth0", "80");
}

static void other_forms_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        ":",
                                        "host",
                                        "host:",
                                        ":80",
                                        "host:0",
                                        "host:65536",
                                        "host:x",
                                        "host:-1",
                                        "[]",
                                        "[]:80",
                                        "[:80",
                                        "]:80",
                                        "::1:80",
                                        "::1",
                                        "[::1]",
                                        "[::1",
                                        "[::1:80",
                                        "::1]:80",
                                        "host:80/path",
                                        "host/path:80",
                                        "a:b:80",
                                        "host:80:",
                                        "host:999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        char *host = NULL;
        const char *port = NULL;
        if (host_port_split(wrong[i], &host, &port) || host || port)
            fail_msg("%s", wrong[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_a_host_and_a_port),
        cmocka_unit_test(the_brackets_of_an_ipv6_address_are_not_part_of_it),
        cmocka_unit_test(other_forms_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
