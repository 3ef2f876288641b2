// SPDX-License-Identifier: Apache-2.0
// An arena for all tests of a file: cmocka_run_group_tests(tests, setup, teardown).
#pragma once

#include "common/base/arena.h"

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena = ARENA_INIT;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}
