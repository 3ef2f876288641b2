// SPDX-License-Identifier: Apache-2.0
// The text that names what each member is about to do, if they differ.
#include "worker/collective/agreement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const char *const names[] = {"rank 0", "rank 1", "rank 2", "rank 3", "rank 4", "rank 5", "rank 6"};

static void expect(const char *const *whats, int n, const char *want)
{
    struct buf out = BUF_INIT(512);
    assert_int_equal(agreement_holds(whats, names, n, &out), want == NULL);
    assert_string_equal(buf_str(&out), want ? want : "");
    buf_done(&out);
}

static void all_that_do_the_same_agree(void **state)
{
    (void)state;
    expect((const char *const[]){"a", "a", "a"}, 3, NULL);
    expect((const char *const[]){"a"}, 1, NULL);
}

static void those_that_differ_are_named_together(void **state)
{
    (void)state;
    expect((const char *const[]){"a", "b", "a"}, 3, "rank 0, rank 2: a; rank 1: b");
    expect((const char *const[]){"a", "b", "c"}, 3, "rank 0: a; rank 1: b; rank 2: c");
}

static void many_are_counted(void **state)
{
    (void)state;
    expect((const char *const[]){"a", "a", "a", "a", "b", "a", "a"}, 7,
           "rank 0, rank 1, rank 2, rank 3 and 2 more: a; rank 4: b");
    expect((const char *const[]){"a", "b", "c", "d", "e", "f", "f"}, 7,
           "rank 0: a; rank 1: b; rank 2: c; rank 3: d; 2 more kinds");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_do_the_same_agree),
        cmocka_unit_test(those_that_differ_are_named_together),
        cmocka_unit_test(many_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
