// SPDX-License-Identifier: Apache-2.0
// Most tests of the gateway begin with this: one gateway with default limits.
#pragma once

#include "tests/unit/support/gateway_fixture.h"

#define GROUP_PATH "/v1/namespaces/ml/workergroups/llama"

extern struct gateway_fixture f;

int world_setup(void **state);
int world_teardown(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
