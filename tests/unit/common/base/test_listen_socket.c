// SPDX-License-Identifier: Apache-2.0
#include "common/base/listen_socket.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void port_0_picks_a_port(void **state)
{
    (void)state;
    static const char *const addresses[] = {":0", "127.0.0.1:0"};
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        struct err err = ERR_INIT;
        int port = 0, fd = listen_socket_open(addresses[i], &port, &err);
        assert_true(fd >= 0);
        assert_in_range(port, 1, 65535);
        close(fd);
    }
}

static void a_port_has_one_socket(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    char address[32];
    int port = 0, fd = listen_socket_open("127.0.0.1:0", &port, &err);
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    assert_int_equal(listen_socket_open(address, &port, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "address already in use"));
    close(fd);
}

static void names_and_halves_of_addresses_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",           "80",        "localhost:80", "127.0.0.1",
                                        "127.0.0.1:", "1.2.3.4:x", "1.2.3.4:-1",   "1.2.3.4:65536",
                                        "::1:80",     "[::1:80",   "[]:80",        "1.2.3:999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err err = ERR_INIT;
        int port;
        if (listen_socket_open(wrong[i], &port, &err) != ERR_INVALID)
            fail_msg("%s", wrong[i]);
        assert_non_null(strstr(err.msg, wrong[i]));
        assert_non_null(strstr(err.msg, "[<IPv6 address>]:<port>"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(port_0_picks_a_port),
        cmocka_unit_test(a_port_has_one_socket),
        cmocka_unit_test(names_and_halves_of_addresses_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
