// SPDX-License-Identifier: Apache-2.0
// The simulation for some thousand events and several seeds; bench/planner runs a million.
//   SIM_SEED=S   only that one      SIM_EVENTS=N   so many
#include "tests/unit/operator/reconcile/placement_simulation.h"

#include "common/base/str.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int64_t number_of(const char *variable, int64_t otherwise)
{
    int64_t n;
    const char *text = getenv(variable);
    return text && str_to_i64(text, &n) ? n : otherwise;
}

static void nothing_is_leaked_overcommitted_or_forgotten(void **state)
{
    (void)state;
    int64_t only = number_of("SIM_SEED", 0);
    for (int64_t seed = only ? only : 1; seed <= (only ? only : 4); seed++) {
        struct simulation_report r;
        struct simulation_options o = {
            .seed = (uint64_t)seed, .events = number_of("SIM_EVENTS", 3000), .nodes = seed % 2 ? 12 : 24};
        const char *wrong = simulation_run(&o, &r);
        if (wrong)
            fail_msg("%s", wrong);
        // Every kind of event has happened.
        assert_true(r.gangs > 100 && r.finished > r.gangs / 2 && r.evicted && r.nodes_lost && r.crashes && r.holds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_leaked_overcommitted_or_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
