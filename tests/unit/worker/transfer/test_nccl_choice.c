// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/nccl_choice.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

enum { RECEIVERS = 2, SENDERS = 2, MEMBERS = RECEIVERS + SENDERS, VERSION = 22304 };

struct scene {
    struct nccl_fact facts[MEMBERS];
    bool connects[RECEIVERS * SENDERS];
    struct nccl_question question;
    int ranks[MEMBERS];
    struct nccl_choice choice;
};

// All have NCCL and a GPU of their own, and all pairs need a connection.
static void make(struct scene *s)
{
    *s = (struct scene){.connects = {true, true, true, true}};
    for (int i = 0; i < MEMBERS; i++)
        s->facts[i] = (struct nccl_fact){.version = VERSION, .gpu = {(unsigned char)(i + 1)}};
    s->question = (struct nccl_question){RECEIVERS, SENDERS, s->facts, s->connects};
}

static void expect(struct scene *s, int n, const int *ranks)
{
    nccl_choose(&s->question, s->ranks, &s->choice);
    assert_int_equal(s->choice.n, n);
    for (int i = 0; n && i < MEMBERS; i++)
        assert_int_equal(s->ranks[i], ranks[i]);
}

static void all_that_need_a_connection_are_in_it(void **state)
{
    struct scene s;
    (void)state;
    make(&s);
    expect(&s, 4, (const int[]){0, 1, 2, 3});
    assert_int_equal(s.choice.number, 0);
    assert_int_equal(s.choice.size, 4);
    assert_int_equal(nccl_choice_pairs(&s.question, &s.choice, 0), 2);
    make(&s);
    s.connects[0] = s.connects[1] = false; // receiver 0 reads
    expect(&s, 3, (const int[]){-1, 0, 1, 2});
    assert_false(nccl_choice_has(&s.question, &s.choice, 0, 0));
    assert_true(nccl_choice_has(&s.question, &s.choice, 1, 0));
    make(&s);
    memset(s.connects, 0, sizeof s.connects);
    expect(&s, 0, NULL);
}

static void members_without_nccl_stay_outside(void **state)
{
    struct scene s;
    (void)state;
    make(&s);
    s.facts[3].version = 0;
    expect(&s, 3, (const int[]){0, 1, 2, -1});
    make(&s);
    s.facts[2].version = s.facts[3].version = 0;
    expect(&s, 0, NULL);
    make(&s);
    s.facts[0].version = 0; // the center makes the unique id
    expect(&s, 0, NULL);
}

static void members_that_share_a_gpu_stay_outside(void **state)
{
    struct scene s;
    (void)state;
    make(&s);
    s.facts[3].gpu[0] = s.facts[0].gpu[0];
    expect(&s, 2, (const int[]){-1, 0, 1, -1});
    make(&s);
    s.facts[3].gpu[0] = s.facts[2].gpu[0]; // no sender is left
    expect(&s, 0, NULL);
    make(&s);
    s.facts[3].gpu[0] = s.facts[0].gpu[0]; // and one of them needs no connection
    s.connects[1] = s.connects[3] = false;
    expect(&s, 3, (const int[]){0, 1, 2, -1});
}

static void versions_that_differ_are_named_and_nobody_uses_it(void **state)
{
    struct scene s;
    (void)state;
    make(&s);
    s.facts[2].version = VERSION + 1;
    expect(&s, 0, NULL);
    assert_int_equal(s.choice.from, 0);
    assert_int_equal(s.choice.differs, 2);
}

static void keep(struct scene *s, const int *ranks, uint32_t n)
{
    for (int i = 0; i < MEMBERS; i++)
        if (ranks[i] >= 0) {
            s->facts[i].number = 4711;
            s->facts[i].rank = (uint32_t)ranks[i];
            s->facts[i].n = n;
        }
}

static void a_communicator_that_all_have_kept_is_used_again(void **state)
{
    struct scene s;
    (void)state;
    make(&s);
    keep(&s, (const int[]){0, 1, 2, 3}, 4);
    expect(&s, 4, (const int[]){0, 1, 2, 3});
    assert_int_equal(s.choice.number, 4711);
    s.connects[0] = s.connects[1] = false; // also by fewer, with the ranks that they have there
    expect(&s, 3, (const int[]){-1, 1, 2, 3});
    assert_int_equal(s.choice.number, 4711);
    assert_int_equal(s.choice.size, 4);
}

static void a_communicator_that_somebody_lacks_or_has_left_is_made_again(void **state)
{
    struct scene s;
    (void)state;
    make(&s);
    keep(&s, (const int[]){0, 1, 2, -1}, 3); // member 3 was not in it
    expect(&s, 4, (const int[]){0, 1, 2, 3});
    assert_int_equal(s.choice.number, 0);
    make(&s);
    keep(&s, (const int[]){0, 1, 2, -1}, 4); // member 3 has started again since
    s.connects[1] = s.connects[3] = false;
    expect(&s, 3, (const int[]){0, 1, 2, -1});
    assert_int_equal(s.choice.number, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_need_a_connection_are_in_it),
        cmocka_unit_test(members_without_nccl_stay_outside),
        cmocka_unit_test(members_that_share_a_gpu_stay_outside),
        cmocka_unit_test(versions_that_differ_are_named_and_nobody_uses_it),
        cmocka_unit_test(a_communicator_that_all_have_kept_is_used_again),
        cmocka_unit_test(a_communicator_that_somebody_lacks_or_has_left_is_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
