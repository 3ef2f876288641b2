// SPDX-License-Identifier: Apache-2.0
// Most tests of the router begin with this: group ml/llama of four ranks and one client, and what the client sends and
// hears.
#pragma once

#include "tests/unit/operator/proxy/proxy_fixture.h"

enum { WORLD = 4 };

struct world {
    struct proxy_fixture f;
    struct worker workers[WORLD];
    struct client c;
};

#define ADD "{\"method\":\"add\"}"

int world_setup(void **state);       // all ranks are connected
int world_setup_empty(void **state); // no rank is connected
int world_teardown(void **state);
#define PROXY_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
#define PROXY_TEST_EMPTY(name) cmocka_unit_test_setup_teardown(name, world_setup_empty, world_teardown)

void sends(struct world *w, struct call_text call);
void sends_group(struct world *w, uint32_t id, const char *head, const char *args);
void hears(struct world *w, const char *want); // the whole answer, or its beginning if `want` ends with an asterisk
void hears_about(struct world *w, const char *begin, const char *about);
void hears_nothing(struct world *w);
void ranks_read(struct world *w);                             // the ranks have read all of their records
void cancels_at(struct world *w, uint32_t rank, uint32_t id); // the next record of that rank is a CANCEL
