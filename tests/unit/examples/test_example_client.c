// SPDX-License-Identifier: Apache-2.0
// examples/client against four accumulators behind a gateway.
#include "tests/unit/support/cli_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void it_prints_what_every_rank_has_answered(void **state)
{
    struct cli_world world;
    char token[] = "/tmp/cadre-token-XXXXXX";
    (void)state;
    int fd = mkstemp(token);
    assert_int_equal(write(fd, "alice\n", 6), 6);
    close(fd);
    cli_world_start(&world, 4);
    setenv("CADRE_TOKEN_FILE", token, 1);
    cli_world_run(&world, (const char *const[]){EXAMPLE_CLIENT, world.url, "ml", "llama", NULL}, NULL);
    assert_string_equal(buf_str(&world.err), "");
    assert_string_equal(buf_str(&world.out), "add([10]): 10 11 12 13\n"
                                             "add({\"x\": 1}): 11 12 13 14\n"
                                             "get_value(): 1000 of 1000 calls were answered\n");
    assert_int_equal(world.status, 0);
    cli_world_run(&world, (const char *const[]){EXAMPLE_CLIENT, world.url, "ml", "alpaca", NULL}, NULL);
    assert_non_null(strstr(buf_str(&world.err), "client: add(): NOT_FOUND: there is no WorkerGroup ml/alpaca"));
    assert_int_equal(world.status, 1);
    unlink(token);
    cli_world_stop(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_prints_what_every_rank_has_answered)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
