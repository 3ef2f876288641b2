// SPDX-License-Identifier: Apache-2.0
// Transfers by NCCL in which a process dies or stands still: over stand-ins for NCCL and the driver.
#include "worker/transfer/reshard.h"

#include "common/base/mem.h"
#include "tests/unit/worker/transfer/troop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>

static const char *const phases[] = {"met", "joining", "begun", "moving", "moved", "ready", "decided", "taken"};

static void who_dies_at_any_moment_is_named_and_all_or_none_have_new_weights(void **state)
{
    (void)state;
    struct troop_result said[TROOP_MAX];
    const int victims[] = {0, 2, 4};
    for (int again = 0; again < 2; again++)
        for (size_t v = 0; v < ARRAY_LEN(victims); v++)
            for (size_t i = 0; i < (victims[v] < 3 ? ARRAY_LEN(phases) : 4); i++) {
                struct troop_scene c = troop_on_gpus();
                c.again = again;
                c.victim = victims[v];
                c.fault = phases[i];
                c.signal = SIGKILL;
                assert_true(troop_run_on_gpus(&c, "", said, NULL));
                troop_agree(&c, said);
                assert_true(said[c.victim].died);
                for (int k = 0; k < c.n_receivers; k++)
                    if (k != c.victim && strcmp(said[k].weights, "old") == 0 &&
                        !strstr(said[k].text, troop_names[c.victim]))
                        fail_msg("%s died (%s), and %s says: %s", troop_names[c.victim], c.fault, troop_names[k],
                                 said[k].text);
            }
}

static void one_stands_still_and_is_named(const char *phase, const char *words)
{
    struct troop_result said[TROOP_MAX];
    struct troop_scene c = troop_on_gpus();
    c.victim = 4;
    c.fault = phase;
    c.signal = SIGSTOP;
    c.limit_ms = 8 * TROOP_SHORT_MS;
    do { // on a busy machine its time is over before it gets there, or the center is late, too
        while (!troop_run_on_gpus(&c, "", said, NULL))
            c.limit_ms *= 2;
        troop_agree(&c, said);
        c.limit_ms *= 2;
    } while (!strstr(said[0].text, words) || !strstr(said[1].text, words));
}

static void who_stands_still_while_bytes_move_is_named(void **state)
{
    (void)state;
    one_stands_still_and_is_named("moving", "(which waits for rank 1 of actor)");
}

// Nobody can join without it.
static void who_stands_still_before_is_named(void **state)
{
    (void)state;
    one_stands_still_and_is_named("met", "rank 1 of actor is not ready");
}

// The others have joined, and the center waits for this one.
static void who_stands_still_while_it_joins_is_named(void **state)
{
    (void)state;
    one_stands_still_and_is_named("joining", "rank 1 of actor is not ready");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_dies_at_any_moment_is_named_and_all_or_none_have_new_weights),
        cmocka_unit_test(who_stands_still_while_bytes_move_is_named),
        cmocka_unit_test(who_stands_still_before_is_named),
        cmocka_unit_test(who_stands_still_while_it_joins_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
