// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/gateway/gateway_world.h"

struct gateway_fixture f;

int world_setup(void **state)
{
    (void)state;
    gateway_fixture_start(&f, NULL, NULL);
    return 0;
}

int world_teardown(void **state)
{
    (void)state;
    gateway_fixture_stop(&f);
    return 0;
}
