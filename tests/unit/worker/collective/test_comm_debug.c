// SPDX-License-Identifier: Apache-2.0
// Communicators in debug mode: what members are about to do is compared before anything is sent. Over gloo, or over the
// back end that CADRE_TEST_BACKEND names.
#include "tests/unit/support/team.h"

#include "common/base/mem.h"
#include "tests/unit/support/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMBERS = 3, ODD = 1, SHORT_LIMIT_MS = 3000 };

enum difference { NONE, COUNT, TYPE, REDUCTION, ROOT, KIND, NOTHING, NO_CALL, DIES };

struct plan {
    enum difference difference;
    bool all_debug;
};

static cadre_result call(cadre_comm *c, enum difference d)
{
    float x[8] = {1, 2, 3, 4};
    switch (d) {
    case COUNT:
        return cadre_all_reduce(c, "F32", x, x, 3, CADRE_SUM);
    case TYPE:
        return cadre_all_reduce(c, "I32", x, x, 4, CADRE_SUM);
    case REDUCTION:
        return cadre_all_reduce(c, "F32", x, x, 4, CADRE_MEAN);
    case ROOT:
        return cadre_broadcast(c, "F32", x, 4, 2);
    case KIND:
        return cadre_barrier(c);
    case NOTHING:
        return cadre_all_reduce(c, "F32", x, x, 0, CADRE_SUM);
    default:
        return cadre_all_reduce(c, "F32", x, x, 4, CADRE_SUM);
    }
}

static cadre_result call_usual(cadre_comm *c, enum difference d)
{
    float x[8] = {1, 2, 3, 4};
    return d == ROOT ? cadre_broadcast(c, "F32", x, 4, 0) : call(c, NONE);
}

// A hundred go well, then one member does something else.
static int differ(const struct team_member *m, void *ctx)
{
    const struct plan *p = ctx;
    struct err err = ERR_INIT;
    struct team_member me = *m;
    me.debug = p->all_debug || m->index == ODD;
    cadre_comm *c = team_join(&me, &err);
    if (!c) {
        team_say(m, err.msg);
        return 0;
    }
    float x[4] = {1, 2, 3, 4};
    cadre_result r = CADRE_OK;
    for (int i = 0; i < 100 && r == CADRE_OK; i++)
        r = cadre_all_reduce(c, "F32", x, x, 4, CADRE_MEAN);
    if (m->index == ODD && p->difference == NO_CALL) {
        team_say(m, "silent");
        pause();
    }
    if (m->index == ODD && p->difference == DIES)
        raise(SIGKILL);
    if (r == CADRE_OK) // else a member has died that was done with the last one before others
        r = m->index == ODD ? call(c, p->difference) : call_usual(c, p->difference);
    team_say(m, r == CADRE_OK ? "done" : cadre_comm_error(c));
    cadre_comm_free(c);
    return 0;
}

static void run(enum difference d, bool all_debug, int64_t limit_ms, const char *want)
{
    struct plan p = {d, all_debug};
    struct team t;
    char line[1024];
    bool lost = d == NO_CALL || d == DIES;
    team_start(&t, MEMBERS, limit_ms, differ, &p);
    for (int i = 0; i < MEMBERS; i++) {
        if (lost && i == ODD)
            continue;
        team_hear(&t, i, line, sizeof line);
        if (!strstr(line, want))
            fail_msg("difference %d: member %d says: %s", (int)d, i, line);
        assert_int_equal(team_wait(&t, i), 0);
    }
    if (lost) {
        kill(t.pids[ODD], SIGKILL);
        assert_int_equal(team_wait(&t, ODD), -SIGKILL);
    }
}

static void what_is_the_same_runs(void **state)
{
    (void)state;
    run(NONE, true, TEAM_LIMIT_MS, "done");
}

static void what_differs_is_an_error_that_names_the_ranks(void **state)
{
    (void)state;
#define OTHERS "collective 101 differs: rank 10, rank 12: all_reduce of 4 F32 with sum; rank 11: "
    run(COUNT, true, TEAM_LIMIT_MS, OTHERS "all_reduce of 3 F32 with sum");
    run(TYPE, true, TEAM_LIMIT_MS, OTHERS "all_reduce of 4 I32 with sum");
    run(REDUCTION, true, TEAM_LIMIT_MS, OTHERS "all_reduce of 4 F32 with mean");
    run(KIND, true, TEAM_LIMIT_MS, OTHERS "barrier of 1 U8");
    run(NOTHING, true, TEAM_LIMIT_MS, OTHERS "all_reduce of 0 F32 with sum");
    run(ROOT, true, TEAM_LIMIT_MS,
        "rank 10, rank 12: broadcast of 4 F32 from rank 10; rank 11: broadcast of 4 F32 from rank 12");
}

static void who_does_not_call_is_named_at_the_limit(void **state)
{
    (void)state;
    run(NO_CALL, true, SHORT_LIMIT_MS, "collective 101 waited too long; rank 11 has not called it");
}

static void who_dies_is_named_at_once(void **state)
{
    (void)state;
    run(DIES, true, TEAM_LIMIT_MS, "rank 11 was lost");
}

static void all_members_must_be_in_the_same_mode(void **state)
{
    (void)state;
    run(NONE, false, TEAM_LIMIT_MS, "rank 10 and rank 11 differ in CADRE_COLLECTIVE_DEBUG");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_the_same_runs),
        cmocka_unit_test(what_differs_is_an_error_that_names_the_ranks),
        cmocka_unit_test(who_does_not_call_is_named_at_the_limit),
        cmocka_unit_test(who_dies_is_named_at_once),
        cmocka_unit_test(all_members_must_be_in_the_same_mode),
    };
    const char *backend = getenv("CADRE_TEST_BACKEND");
    char folder[64];
    if (backend)
        team_backend = backend;
    folder_new(folder);
    setenv("GPU_STAND_IN", folder, 1);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    folder_free(folder);
    return r;
}
